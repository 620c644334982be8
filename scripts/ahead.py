# SPDX-License-Identifier: Apache-2.0
"""Work of later stages, done in the time that tests leave: one thing at a time, at the lowest precedence. Whose turn comes before it is
done is stopped, and its stage does it as it would have done; so what comes of it is the same, with or without."""
import os
import signal
import subprocess
import threading
import time

NICE = 19


class Done:
    """What a list of commands came to: the exit status of the last that ran, what all of them said, and their seconds."""

    def __init__(self):
        self.status, self.output, self.began, self.seconds = 0, "", time.time(), []


class Ahead:
    def __init__(self, root):
        self.root, self.lock = root, threading.Condition()
        self.waiting, self.done = {}, {}  # by name: commands; what came of them
        self.name = self.process = None  # what is in work
        self.stops = False  # it is

    def start(self, work):
        """work: {name: [command, ...]}, in the order in which it is wanted."""
        self.waiting.update(work)
        threading.Thread(target=self._run, daemon=True).start()

    def take(self, name):
        """What came of that work, if it ended before its turn; None: it is to be done."""
        with self.lock:
            self.waiting.pop(name, None)
            while self.name == name:
                self.stops = True
                if self.process:
                    os.killpg(self.process.pid, signal.SIGINT)  # ninja takes back what it has half written
                self.lock.wait(1)
            return self.done.pop(name, None)

    def stop(self):
        with self.lock:
            self.waiting.clear()
            name = self.name
        if name:
            self.take(name)

    def _run(self):
        while True:
            with self.lock:
                self.name, self.process, self.stops = None, None, False
                self.lock.notify_all()
                if not self.waiting:
                    return
                self.name = next(iter(self.waiting))
                commands = self.waiting.pop(self.name)
            done = Done()
            for command in commands:
                if not self._one(command, done):
                    break
            with self.lock:
                if not self.stops:
                    self.done[self.name] = done

    def _one(self, command, done):
        """One command to its end; False: it failed, or was stopped."""
        began = time.time()
        with self.lock:
            if self.stops:
                return False
            self.process = subprocess.Popen(["nice", "-n", str(NICE), *command], cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        output, _ = self.process.communicate()
        with self.lock:
            done.output += output
            done.seconds.append(time.time() - began)
            done.status = self.process.returncode
            self.process = None
        return done.status == 0
