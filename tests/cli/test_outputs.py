# SPDX-License-Identifier: Apache-2.0
"""Every command that writes to a name that people give follows one rule: files appear when they are complete, links are followed, devices and
FIFOs are written into, and what cannot be written is refused before anything is read. usage: test_outputs.py build/weft"""
import glob
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
import unittest

from gguf_maker import I32, U32, Model, folder_of_weights
from common import PATIENCE, WEFT, InFolder, main, repeated, run, weft

ALDERBROOK = "models/alderbrook.gguf"


class Writers(InFolder):
    """`commands` has all of them: a name, what it is given, and the end that its outputs' names need."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model, cls.text, cls.pirate = cls.path("in.gguf"), cls.path("in.txt"), "models/pirate.gguf"
        with open(cls.model, "wb") as f:
            f.write(bytes(Model()))
        with open(cls.text, "w") as f:
            f.write("once upon a time there was a little village by the river\n" * 40)
        m, t = cls.model, cls.text
        cls.commands = {
            "quantize": (lambda o: ("quantize", m, o, "Q8_0"), ""),
            "compile": (lambda o: ("compile", m, o), ""),
            "imatrix": (lambda o: ("imatrix", m, "-f", t, "-o", o, "-c", "16", "--chunks", "2"), ""),
            "eval logits": (lambda o: ("eval", "logits", m, "--tokens", "1 2 3", "-o", o), ""),
            "eval perplexity --kl-base": (lambda o: ("eval", "perplexity", m, "-f", t, "-c", "16", "--chunks", "2", "--kl-base", o), ""),
            "train-tokenizer": (lambda o: ("train-tokenizer", t, "-o", o, "--vocab", "270"), ""),
            "tokenize": (lambda o: ("tokenize", m, "a village", "-o", o), ".u16"),
            "bench --write": (lambda o: ("bench", "--synthetic", "tiny-128", "--write", o), ""),
            "bench --trace": (lambda o: ("bench", m, "-p", "4", "-n", "1", "-r", "1", "--trace", o), ""),
            "adapter merge": (lambda o: ("adapter", "merge", ALDERBROOK, o, "--adapter", "p=" + cls.pirate), ""),
            "adapter merge --method": (lambda o: ("adapter", "merge", ALDERBROOK, o, "--adapter", "p=" + cls.pirate, "--method", "cat"), ".gguf"),
            "adapter convert": (lambda o: ("adapter", "convert", cls.pirate, o, "--base", ALDERBROOK), ".gguf"),
        }
        cls.folder_of_outputs = cls.path("outputs")
        os.mkdir(cls.folder_of_outputs)

    def out(self, name):
        return os.path.join(self.folder_of_outputs, name)

    def tearDown(self):
        for name in os.listdir(self.folder_of_outputs):
            path = self.out(name)
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)

    def each(self):
        """All; some where programs are slow: what writes for them is one room (tests/unit/out_file.c)."""
        for name, (command, end) in list(self.commands.items())[::repeated(1, 3, 3)]:
            with self.subTest(name):
                yield name, command, end
                self.tearDown()

    def test_links_are_followed_and_stay(self):
        for _, command, end in self.each():
            link, target = self.out("link" + end), self.out("target")
            os.symlink("target", link)  # nothing is there yet
            p = weft(*command(link))
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual(os.readlink(link), "target")
            self.assertTrue(os.path.isfile(target) and os.path.getsize(target) > 0)
            self.assertEqual(sorted(os.listdir(self.folder_of_outputs)), sorted(["link" + end, "target"]))
            again = weft(*command(link))  # and over what is there
            self.assertEqual((again.returncode, os.readlink(link)), (0, "target"), again.stderr)

    def test_fifos_and_devices_are_written_into(self):
        for name, command, end in self.each():
            fifo, device, got = self.out("fifo" + end), self.out("null" + end), []
            os.mkfifo(fifo)
            reader = threading.Thread(target=lambda: got.append(pathlib.Path(fifo).read_bytes()))
            reader.start()
            p = weft(*command(fifo))
            reader.join(PATIENCE)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertTrue(stat.S_ISFIFO(os.lstat(fifo).st_mode) and len(got[0]) > 5)
            if not name.startswith("bench"):  # which tells of the day, or of times
                p = weft(*command(self.out("file" + end)))
                with open(self.out("file" + end), "rb") as f:
                    self.assertEqual(got[0], f.read())
            try:
                os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
                open(device, "wb").close()
            except OSError as why:
                print(f"left out: no device can be made or used here: {why}")
                continue
            p = weft(*command(device))
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertTrue(stat.S_ISCHR(os.lstat(device).st_mode))
            self.assertFalse(glob.glob(self.out("*.tmp-*")))

    def test_what_cannot_be_written_is_found_before_work(self):
        """So early that what is read need not even be there."""
        missing = {self.model: "/nonexistent/in.gguf", self.text: "/nonexistent/in.txt", ALDERBROOK: "/nonexistent/base.gguf"}
        for name, command, end in self.each():
            s = socket.socket(socket.AF_UNIX)
            s.bind(self.out("s" + end))
            s.close()
            os.mkdir(self.out("folder" + end))
            cases = [
                (self.out("folder" + end), b"is a folder"),
                (self.out("none/x" + end), b"nothing can be written into its folder"),
                (self.out("s" + end), b"is a socket"),
            ]
            if not end:
                cases += [("", b"is empty"), (self.out("new/"), b"folder's name")]
            for out, words in cases:
                p = weft(*(missing.get(a, a) for a in command(out)))
                self.assertEqual(p.returncode, 1, (out, p.stderr))
                self.assertIn(words, p.stderr)
                self.assertEqual(p.stdout, b"")

    def test_the_rule_is_told(self):
        for c in (["quantize"], ["compile"], ["convert"], ["imatrix"], ["eval", "logits"], ["eval", "perplexity"], ["train-tokenizer"], ["tokenize"],
                  ["bench"], ["adapter", "merge"], ["adapter", "convert"]):
            self.assertIn(b"A link is followed", weft(*c, "--help").stdout, c)

    def test_an_adapter_that_was_written_is_told_of(self):
        """A line with its file, rank and size; and a pipe takes one where its name says what it is, as the help has it."""
        merge = lambda o, *more: weft("adapter", "merge", ALDERBROOK, o, "--adapter", "p=" + self.pirate, "--method", "cat", *more)
        convert = lambda o: weft("adapter", "convert", self.pirate, o, "--base", ALDERBROOK)
        for write, end in ((merge, ", 1 adapter merged"), (convert, "")):
            for out in (self.out("a.gguf"), self.out("peft")):
                p = write(out)
                info = json.loads(weft("adapter", "info", out, "--base", ALDERBROOK, "--json").stdout)
                ranks = {m["rank"] for m in info["matrices"]}
                said = f"{out}: {len(info['matrices'])} matrices, rank {min(ranks)}, {info['parameters'] * 4 / 1e6:.2f} MB{end}\n"
                self.assertEqual((p.returncode, p.stdout, p.stderr.decode(), len(ranks)), (0, b"", said, 1))
                shutil.rmtree(out, ignore_errors=True)
            self.assertIn(b"/dev/stdout takes none", weft("adapter", "merge" if write == merge else "convert", "--help").stdout)
            for out in ("/dev/stdout", "/dev/null"):
                p = write(out)
                self.assertEqual((p.returncode, p.stdout, b"or a name that ends in .gguf" in p.stderr), (1, b"", True), p.stderr)
        p = merge(self.out("a.gguf"), "--rank", "2", "--json")
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        json.loads(p.stdout)

    def test_a_saved_conversation(self):
        """chat's /save, which is told a name while the chat goes on."""
        os.symlink("target", self.out("link"))
        p = weft("chat", ALDERBROOK, "--temp", "0", stdin=f"/system Be brief.\n/save {self.out('link')}\n/save {self.folder_of_outputs}\n".encode())
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"is a folder", p.stderr)
        self.assertEqual(os.readlink(self.out("link")), "target")
        self.assertTrue(os.path.getsize(self.out("target")) > 10)


class Inputs(InFolder):
    """What is read is never written over, by whatever name, and though it is but a part of what is read."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hf = folder_of_weights(cls.path("hf"))
        cls.first, cls.second = (cls.path(f"split-0000{i}-of-00002.gguf") for i in (1, 2))
        whole = Model()
        half = len(whole.tensors) // 2
        for no, path in enumerate((cls.first, cls.second)):
            m = Model()
            m.tensors = m.tensors[half:] if no else m.tensors[:half]
            m.meta = {} if no else m.meta
            m.meta.update({"split.no": (U32, no), "split.count": (U32, 2), "split.tensors.count": (I32, len(whole.tensors))})
            with open(path, "wb") as f:
                f.write(bytes(m))

    def everything(self):
        """The bytes of all that lies in the folders, by name."""
        found = {}
        for place, _, names in os.walk(self.path(".")):
            found.update({os.path.join(place, n): pathlib.Path(place, n).read_bytes() for n in names if os.path.exists(os.path.join(place, n))})
        return found

    def refused(self, words, *commands):
        before = self.everything()
        for command in commands:
            p = weft(*command)
            self.assertEqual(p.returncode, 1, (command, p.stderr))
            self.assertIn(words, p.stderr, command)
        self.assertEqual(self.everything(), before)

    def test_a_folder(self):
        f = self.hf
        os.symlink(os.path.join(f, "config.json"), self.path("link"))
        os.link(os.path.join(f, "model.safetensors"), self.path("second-name"))
        os.symlink(f, self.path("same"))
        os.symlink("hf/chat_template.jinja", self.path("dangling"))
        for command in ("convert", "compile"):
            for name in ("model.safetensors", "config.json"):
                self.refused(b"is a part of what is read", (command, f, os.path.join(f, name)), (command, self.path("same"), os.path.join(f, ".", name)))
            self.refused(b"is a part of what is read", (command, f, self.path("link")), (command, f, self.path("second-name")))
            for name in ("tokenizer.json", "tokenizer.model", "model.safetensors.index.json"):
                self.refused(b"would become a part of what is read", (command, f, os.path.join(self.path("same"), name)))
            self.refused(b"would become a part of what is read", (command, f, self.path("dangling")))
            for _ in range(2):  # beside what is read, and again
                p = weft(command, f, os.path.join(f, "out.gguf"))
                self.assertEqual(p.returncode, 0, p.stderr)
            os.remove(os.path.join(f, "out.gguf"))

    def test_a_shard_of_another_name(self):
        odd = folder_of_weights(self.path("odd"), "weights.part")
        for command in ("convert", "compile"):
            self.refused(b"is a part of what is read", (command, odd, os.path.join(odd, "weights.part")))
            self.assertEqual(weft(command, odd, self.path("whole")).returncode, 0)

    def test_a_split_model(self):
        os.symlink(self.second, self.path("second-link"))
        os.link(self.second, self.path("second-hard"))
        for out in (self.second, self.path("second-link"), self.path("second-hard")):
            self.refused(b"is a part of what is read", ("quantize", self.first, out, "Q8_0"), ("compile", self.first, out))
            self.refused(b"is a part of what is read", ("adapter", "merge", self.first, out, "--adapter", "p=models/pirate.gguf"))
        self.assertEqual(weft("quantize", self.first, self.path("whole.gguf"), "Q8_0").returncode, 0)

    def test_in_a_chat_and_by_tokenize(self):
        model, adapter = self.path("model.u16"), self.path("adapter.gguf")
        for path, of in ((model, ALDERBROOK), (adapter, "models/pirate.gguf")):
            with open(path, "wb") as f:
                f.write(pathlib.Path(of).read_bytes())
        self.refused(b"is what is read", ("tokenize", model, "a", "-o", model))
        before = self.everything()
        p = weft("chat", model, "--adapter", "p=" + adapter, stdin=f"/system Be brief.\n/save {model}\n/save {adapter}\n".encode())
        self.assertEqual((p.returncode, p.stderr.count(b"is what is read")), (1, 2), p.stderr)
        self.assertEqual(self.everything(), before)

    def test_an_adapter_of_a_folder(self):
        peft = self.path("peft")
        self.assertEqual(weft("adapter", "convert", "models/pirate.gguf", peft, "--base", ALDERBROOK).returncode, 0)
        os.symlink(os.path.join(peft, "adapter_model.safetensors"), self.path("weights.gguf"))
        self.refused(b"is a part of what is read", ("adapter", "convert", peft, self.path("weights.gguf"), "--base", ALDERBROOK),
                     ("adapter", "merge", ALDERBROOK, os.path.join(peft, "adapter_config.json"), "--adapter", "p=" + peft),
                     ("adapter", "merge", ALDERBROOK, self.path("weights.gguf"), "--adapter", "p=" + peft, "--method", "cat"))


class Private(InFolder):
    def test_who_may_read_stays(self):
        """A model and a conversation that are written anew are for those that they were for."""
        talk, model = self.path("talk.jsonl"), self.path("model.gguf")
        for path in (talk, model):
            with open(path, "w") as f:
                f.write('{"messages": [{"role": "user", "content": "secret"}]}\n')
            os.chmod(path, 0o600)
        p = weft("chat", ALDERBROOK, "--temp", "0", stdin=f"/load {talk}\n/save {talk}\n".encode())
        self.assertEqual(p.returncode, 0, p.stderr)
        p = weft("quantize", ALDERBROOK, model, "Q8_0")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual([stat.S_IMODE(os.stat(path).st_mode) for path in (talk, model)], [0o600, 0o600])


class Ends(InFolder):
    """Signals: nothing begun is left, and what was there is as it was."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = cls.path("in.txt")
        with open(cls.text, "w") as f:
            f.write("once upon a time there was a little village by the river\n" * 4000)

    def killed(self, number, *command):
        """The command's status when the signal comes while its output is being written, in the folder `outputs`."""
        folder = self.path("outputs")
        os.makedirs(folder, exist_ok=True)
        p = subprocess.Popen(WEFT + list(command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
        until = time.monotonic() + PATIENCE
        while not glob.glob(os.path.join(folder, "*.tmp-*")):
            self.assertIsNone(p.poll(), "it ended before it wrote anything")
            self.assertLess(time.monotonic(), until)
            time.sleep(0.001)
        p.send_signal(number)
        err = p.communicate(timeout=PATIENCE)[1]
        self.assertNotIn(b"Sanitizer", err)
        self.assertEqual(glob.glob(os.path.join(folder, "*")), [], err)
        return p.returncode

    def test_signals_leave_no_temporary(self):
        out = self.path("outputs/out")
        base = ("eval", "perplexity", ALDERBROOK, "-f", self.text, "-c", "64", "--kl-base", out)
        for number in repeated((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT), (signal.SIGTERM, signal.SIGHUP), (signal.SIGHUP,)):
            self.assertEqual(self.killed(number, *base), -number)
        self.assertEqual(self.killed(signal.SIGHUP, "quantize", ALDERBROOK, out, "Q2_K", "-t", "1"), 1)  # at its next progress, which says so

    def test_what_is_ignored_stays_so(self):
        """As nohup has it."""
        out = self.path("whole")
        p = subprocess.Popen(
            WEFT + ["quantize", ALDERBROOK, out, "Q2_K", "-t", "1"],
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        while not os.path.exists(out) and p.poll() is None:
            p.send_signal(signal.SIGHUP)
            time.sleep(0.01)
        err = p.communicate(timeout=PATIENCE)[1]
        self.assertEqual((p.returncode, os.path.exists(out)), (0, True), err)

    def test_a_fifo_without_a_reader_can_be_left(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        p = subprocess.Popen(
            WEFT + ["quantize", ALDERBROOK, fifo, "Q8_0"],
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        time.sleep(0.3)
        self.assertIsNone(p.poll())
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=PATIENCE)[1]
        self.assertTrue(p.returncode in (1, -signal.SIGINT), (p.returncode, err))


class Standard(unittest.TestCase):
    def test_output_that_fails_is_told(self):
        for args in (["--help"], ["--version"], ["help"], ["run", "--help"], ["eval", "--help"], ["adapter", "--help"], ["info", ALDERBROOK, "--json"],
                     ["tokenize", ALDERBROOK, "a"], ["devices"]):
            with open("/dev/full", "wb") as full:
                p = run(WEFT + args, stdout=full, stderr=subprocess.PIPE, capture_output=False)
            self.assertEqual(p.returncode, 1, args)
            self.assertIn(b"writing to standard output failed", p.stderr)

    def test_a_closed_output_is_no_file(self):
        """What is opened first must not take the place of standard output, which is then printed into."""
        with InFolderPath() as out:
            p = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *WEFT, "quantize", ALDERBROOK, out, "Q8_0", "--json"], capture_output=True, timeout=PATIENCE)
            self.assertEqual(p.returncode, 1, p.stderr)
            again = weft("quantize", ALDERBROOK, out + "2", "Q8_0")
            self.assertEqual(again.returncode, 0)
            with open(out, "rb") as a, open(out + "2", "rb") as b:
                self.assertEqual(a.read(), b.read())


class InFolderPath:
    """A name in a folder that is gone behind it."""
    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        return os.path.join(self.folder.name, "out")

    def __exit__(self, *_):
        self.folder.cleanup()


if __name__ == "__main__":
    main()
