# SPDX-License-Identifier: Apache-2.0
"""Claims about `weft serve` as a service: it takes a socket that its parent passes, tells when it is ready, ends and lives, and runs where
no memory may be written and executed. The parent is this program, by the protocols of sd_listen_fds(3), sd_notify(3) and
sd_watchdog_enabled(3).

usage: test_service.py build/weft"""
import ctypes
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
import common
from common import PATIENCE, WEFT, weft

WATCHDOG_US = 200_000
PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN = 65, 1
BODY = json.dumps({"prompt": [5, 6, 7, 8], "n_predict": 3, "ignore_eos": True})


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Service(common.InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        p = weft("bench", "--synthetic", "tiny", "--type", "q4_0", "--write", cls.path("tiny.gguf"))
        assert p.returncode == 0, p.stderr

    def setUp(self):
        name = self.path("notify")
        if os.path.exists(name):
            os.unlink(name)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(name)
        self.manager.settimeout(PATIENCE)

    def start(self, passed=None, n=1, options=(), model=None, **environment):
        """As a manager starts it: a shell makes the passed socket descriptor 3 and LISTEN_PID its own process, which becomes the service."""
        options = [str(o) for o in options]
        command = [*WEFT, "serve", model or self.path("tiny.gguf"), "-t", "1", *options]
        if passed is not None:
            command = ["sh", "-c", f'exec "$@" 3<&{passed.fileno()}', "sh", "sh", "-c", f'LISTEN_PID=$$ LISTEN_FDS={n} exec "$@"', "sh", *command]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                   pass_fds=[passed.fileno()] if passed is not None else [],
                                   env={**os.environ, **{k: str(v) for k, v in environment.items()}})
        self.addCleanup(lambda: process.stderr.closed or (process.kill(), process.communicate()))
        return process

    def told(self, wanted):
        """Waits for that message; returns those that came before it."""
        before = []
        while (got := self.manager.recv(4096).decode()) != wanted:
            before.append(got)
        return before

    def complete(self, connection):
        connection.request("POST", "/completion", BODY, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        got = json.loads(answer.read())
        connection.close()
        return got["tokens_predicted"]

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
        common.check_report(err.encode())
        self.assertEqual(process.returncode, 0, err)
        return err

    def test_passed_tcp(self):
        """A socket of TCP that the parent passes is served instead of --port; requests that come before the model is read wait in it, and it
        goes on listening when the service has ended. Its manager hears what it reads, then READY=1, then STOPPING=1."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        port = listener.getsockname()[1]
        early = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        early.connect()
        process = self.start(listener, options=["--port", 1], NOTIFY_SOCKET=self.path("notify"))
        before = self.told("READY=1")
        self.assertTrue(before[0].startswith("STATUS=reading ") and before[-1].endswith(f"at http://127.0.0.1:{port}"), before)
        self.assertEqual(self.complete(early), 3)
        self.stop(process)
        self.assertEqual(self.told("STOPPING=1"), [])
        later = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)  # the manager's: the next one will take it
        later.close()

    def test_passed_unix(self):
        """A unix socket, too; its file is the manager's, and stays."""
        path = self.path("passed.sock")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()
        process = self.start(listener, NOTIFY_SOCKET=self.path("notify"))
        self.assertIn(f"at unix:{path}", self.told("READY=1")[-1])
        self.assertEqual(self.complete(UnixConnection(path)), 3)
        self.stop(process)
        self.assertTrue(os.path.exists(path))

    def test_what_is_not_for_it(self):
        """LISTEN_FDS of another process is not read; a datagram socket, two sockets, and variables that are no numbers are refused by name."""
        process = self.start(options=["--port", -1], LISTEN_PID=1, LISTEN_FDS=1, NOTIFY_SOCKET=self.path("notify"))
        self.told("READY=1")
        self.stop(process)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(datagrams.close)
        for passed, n, environment, message in (
            (datagrams, 1, {}, "none of TCP or unix that listens"),
            (datagrams, 2, {}, "LISTEN_FDS=2: weft serve takes one socket"),
            (None, 0, {"LISTEN_PID": "x", "LISTEN_FDS": 1}, "LISTEN_PID=x: must be a number"),
            (None, 0, {"WATCHDOG_USEC": "-1"}, "WATCHDOG_USEC=-1: must be a number"),
            (None, 0, {"NOTIFY_SOCKET": "relative"}, "NOTIFY_SOCKET=relative: must be a path"),
        ):
            process = self.start(passed, n, **environment)
            _, err = process.communicate(timeout=PATIENCE)
            common.check_report(err.encode())
            self.assertEqual(process.returncode, 1, err)
            self.assertIn(message, err)

    def test_abstract_socket(self):
        name = f"weft-test-{os.getpid()}"
        self.manager.close()
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind("\0" + name)
        self.manager.settimeout(PATIENCE)
        process = self.start(options=["--port", -1], NOTIFY_SOCKET="@" + name)
        self.told("READY=1")
        self.stop(process)
        self.told("STOPPING=1")

    def test_watchdog(self):
        """Signs of life come as long as requests are answered: when its socket takes no more connections, they end."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        process = self.start(listener, NOTIFY_SOCKET=self.path("notify"), WATCHDOG_USEC=WATCHDOG_US)
        self.told("READY=1")
        for _ in range(3):
            self.told("WATCHDOG=1")
        listener.shutdown(socket.SHUT_RDWR)
        while select.select([self.manager], [], [], 10 * WATCHDOG_US / 1e6)[0]:  # twice in each WATCHDOG_US, if at all
            self.assertEqual(self.manager.recv(4096), b"WATCHDOG=1")
        self.stop(process)
        self.assertEqual(self.told("STOPPING=1"), [])

    def test_another_ones_watchdog(self):
        process = self.start(options=["--port", -1], NOTIFY_SOCKET=self.path("notify"), WATCHDOG_USEC=WATCHDOG_US, WATCHDOG_PID=1)
        self.told("READY=1")
        self.stop(process)
        self.assertEqual(self.told("STOPPING=1"), [])

    @common.leave_out(common.SANITIZED, "sanitizers map what they like")
    def test_no_memory_is_written_and_executed(self):
        """MemoryDenyWriteExecute= of the unit: regular expressions run without machine code of their own, and split text as with it."""
        libc = ctypes.CDLL(None, use_errno=True)
        text = "Once upon a time, there were 3 dragons; they've said \"hello\"\n\n  and left.".encode()
        model = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "models", "alderbrook.gguf")

        def deny():
            if libc.prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
                os._exit(99)
        plain = weft("tokenize", model, text.decode())
        self.assertEqual(plain.returncode, 0, plain.stderr)
        denied = subprocess.run([*WEFT, "tokenize", model, text.decode()], capture_output=True, preexec_fn=deny)
        if denied.returncode == 99:
            self.skipTest("this kernel has no PR_SET_MDWE (Linux 6.3 has)")
        self.assertEqual((denied.returncode, denied.stdout), (0, plain.stdout), denied.stderr)


if __name__ == "__main__":
    common.main()
