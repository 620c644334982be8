# SPDX-License-Identifier: Apache-2.0
"""Claims about weft train. usage: test_train.py build/weft"""
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import time
import xml.dom.minidom

from common import PATIENCE, WEFT, main, repeated, weft
from training_case import SHAPE, TEMPLATE, TEXT, Training, of_files


class Models(Training):
    def test_a_model_learns_its_text(self):
        points = self.points("base")
        self.assertEqual([p["step"] for p in points], list(range(1, 121)))
        self.assertGreater(points[0]["loss"], 5)
        self.assertLess(points[-1]["loss"], 2)
        p = weft("run", self.model, "The fox sat by", "-n", "12", "--temp", "0", "-q")
        self.assertIn(b"the mill. \"Who is there?\"", p.stdout)
        picture = xml.dom.minidom.parse(os.path.join(self.path("base"), "loss.svg"))
        self.assertEqual(picture.documentElement.tagName, "svg")
        self.assertEqual(len(picture.getElementsByTagName("path")) > 3, True)

    def test_compare_gives_the_base_s_own_answer(self):
        p = weft("compare", self.model, "The fox sat by", "--raw", "-n", "12", "--temp", "0", "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        alone = json.loads(weft("run", self.model, "The fox sat by", "-n", "12", "--temp", "0", "--json").stdout)
        self.assertEqual([(r["adapter"], r["text"]) for r in json.loads(p.stdout)], [("base", alone["text"])])

    def test_threads_change_nothing(self):
        one, three = (pathlib.Path(self.train("t" + t, "--steps", "3", "-t", t)).read_bytes() for t in ("1", "3"))
        self.assertEqual(one, three)
        self.assertNotEqual(one, pathlib.Path(self.train("seed", "--steps", "3", "--seed", "2")).read_bytes())

    def test_a_killed_run_that_goes_on_is_the_run_without_a_stop(self):
        args = ("--steps", "14", "--save-every", "1", "--accumulate", "2")
        whole = pathlib.Path(self.train("whole", *args)).read_bytes()
        for _ in range(20):  # until one is hit before its end
            shutil.rmtree(self.path("killed"), ignore_errors=True)
            child = subprocess.Popen(WEFT + self.command("killed", *args), stderr=subprocess.DEVNULL)
            while child.poll() is None and not os.path.exists(self.path("killed/checkpoint.gguf")):
                time.sleep(0.002)
            child.send_signal(signal.SIGKILL)
            if child.wait() == -signal.SIGKILL and not os.path.exists(self.path("killed/model.gguf")):
                break
        else:
            self.fail("no run was killed before its end")
        self.assertEqual(pathlib.Path(self.train("killed", "--resume", *args)).read_bytes(), whole)
        self.assertEqual([p["step"] for p in self.points("killed")], list(range(1, 15)))
        self.assertEqual([p["loss"] for p in self.points("killed")], [p["loss"] for p in self.points("whole")])

    @of_files
    def test_a_model_keeps_its_name_and_template(self):
        template = self.write("other.jinja", TEMPLATE + " ")
        self.train("named", "--steps", "1", "--name", "first", "--chat-template", template)
        p = weft(
            "train",
            self.text,
            "--base",
            self.path("named/model.gguf"),
            "--out",
            self.path("further"),
            "-c",
            "48",
            "-b",
            "96",
            "--steps",
            "1",
            "--name",
            "second",
        )
        self.assertEqual(p.returncode, 0, p.stderr)
        for out, name in (("named", b"first"), ("further", b"second")):
            head = self.bytes_of(out, "model.gguf")
            for key, text in ((b"general.name", name), (b"tokenizer.chat_template", (TEMPLATE + " ").encode())):
                at = head.index(key) + len(key) + 4  # behind the type
                self.assertEqual(head[at + 8:at + 8 + int.from_bytes(head[at:at + 8], "little")], text)
                self.assertEqual(head.count(key), 1)

    @of_files
    def test_ids_are_learned_as_their_text_is(self):
        p = weft(
            "tokenize",
            self.vocab,
            "-",
            "-o",
            self.path("ids.u16"),
            stdin=TEXT.replace("<|endoftext|>\n", "<|endoftext|><|startoftext|>")
            .removesuffix("<|startoftext|>")
            .encode(),
        )
        self.assertEqual(p.returncode, 0, p.stderr)
        command = self.command("ids", "--steps", "3")
        command[1] = self.path("ids.u16")
        self.assertEqual(weft(*command).returncode, 0)
        self.assertEqual(self.bytes_of("ids", "model.gguf"), pathlib.Path(self.train("texts", "--steps", "3")).read_bytes())
        self.assertEqual(weft("tokenize", self.vocab, "a", "-o", self.path("ids.bin")).returncode, 2)

    @of_files
    def test_an_interrupted_run_saves_itself(self):
        """By Ctrl-C, by a system that goes down, and by a terminal that is closed."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            out = f"stopped-{number}"
            child = subprocess.Popen(
                WEFT + self.command(out, "--steps", "100000", "--save-every", "0"),
                stderr=subprocess.PIPE,
                preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
            )
            while not os.path.exists(self.path(out + "/loss.jsonl")) or not self.points(out):
                time.sleep(0.01)
            child.send_signal(number)
            _, stderr = child.communicate(timeout=PATIENCE)
            self.assertEqual(child.returncode, 1, stderr)
            self.assertIn(b"--resume goes on", stderr)
            self.assertEqual(sorted(os.listdir(self.path(out))), ["checkpoint.gguf", "loss.jsonl", "loss.svg"])

    @of_files
    def test_an_interruption_while_data_are_read_ends_at_once(self):
        """There is nothing to save, so nothing is left; a sparse file that would take minutes is not read to its end."""
        long = self.write("long.txt", "")
        os.truncate(long, 1 << 31)
        for n, number in enumerate((signal.SIGINT, signal.SIGTERM)):
            out = self.path(f"early{n}")
            command = self.command(f"early{n}", "--steps", "2")
            command[1] = long
            child = subprocess.Popen(WEFT + command, stderr=subprocess.PIPE)
            while not os.path.exists(out):
                time.sleep(0.002)
            child.send_signal(number)
            try:
                _, stderr = child.communicate(timeout=PATIENCE / 20)
            finally:
                child.kill()
            self.assertEqual(child.returncode, 1, stderr)
            self.assertIn(b"stopped before the first step; there was nothing to save", stderr)
            self.assertFalse(os.path.exists(out))

    @of_files
    def test_an_interruption_within_a_step_gives_it_up(self):
        """A step of many batches, or the measuring of much that is held out, is not waited for: the checkpoint is that of the step before, and
        the run that goes on from it ends as one without an interruption."""
        held = self.write("held.txt", TEXT * repeated(20000, 5000, 300))
        command = self.command("given-up", "--steps", "3", "--accumulate", "100000")
        for more in ([], ["--heldout", held, "--heldout-tokens", "0"]):
            out = self.path("given-up")
            child = subprocess.Popen(WEFT + command + more, stderr=subprocess.PIPE)
            while b"tokens in an epoch" not in child.stderr.readline():
                self.assertIsNone(child.poll())
            child.send_signal(signal.SIGINT)
            try:
                _, stderr = child.communicate(timeout=PATIENCE / 20)
            finally:
                child.kill()
            self.assertEqual(child.returncode, 1, stderr)
            self.assertIn(b"--resume goes on", stderr)
            self.assertEqual(sorted(os.listdir(out)), ["checkpoint.gguf", "loss.jsonl", "loss.svg"])
            self.assertEqual(self.points("given-up"), [])
            shutil.rmtree(out)
        whole = pathlib.Path(self.train("whole-again", "--steps", "6", "--accumulate", "3", "--save-every", "0")).read_bytes()
        args = ("--steps", "6", "--accumulate", "3", "--save-every", "0")
        child = subprocess.Popen(WEFT + self.command("halves", *args), stderr=subprocess.PIPE)
        while not os.path.exists(self.path("halves/loss.jsonl")) or not self.points("halves"):
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        if child.returncode:
            self.assertEqual(pathlib.Path(self.train("halves", "--resume", *args)).read_bytes(), whole)
        self.assertEqual(self.bytes_of("halves", "model.gguf"), whole)

    @of_files
    def test_what_a_killed_run_left_half_written_goes(self):
        args = ("--steps", "4", "--save-every", "2")
        self.train("left", *args)
        for name in ("checkpoint.gguf.tmp-0123456789abcdef", "model.gguf.tmp-00000000000000aa", "checkpoint.gguf.tmp-mine", "mine.tmp-0123456789abcdef"):
            self.write("left/" + name, "half")
        self.train("left", "--resume", *args)
        self.assertEqual(
            sorted(os.listdir(self.path("left"))),
            [
                "checkpoint.gguf",
                "checkpoint.gguf.tmp-mine",
                "loss.jsonl",
                "loss.svg",
                "mine.tmp-0123456789abcdef",
                "model.gguf",
            ],
        )

    @of_files
    def test_a_curve_that_cannot_be_drawn_ends_no_run(self):
        os.makedirs(self.path("undrawn/loss.svg"))
        p = weft(*self.command("undrawn", "--steps", "2"))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"the loss curve is not drawn", p.stderr)
        self.assertTrue(os.path.exists(self.path("undrawn/model.gguf")))

    @of_files
    def test_the_heldout_loss_is_measured_before_the_first_step_too(self):
        self.train("before", "--steps", "2", "--heldout", self.text, "--heldout-every", "0")
        points = self.points("before")
        self.assertEqual([(p["step"], "loss" in p, "heldout" in p) for p in points], [(0, False, True), (1, True, False), (2, True, True)])
        self.assertAlmostEqual(points[0]["heldout"], math.log(320), delta=0.2)  # a fresh model knows nothing

    def test_the_heldout_loss_is_that_of_the_documents(self):
        self.train("held", "--steps", "2", "--heldout", self.text, "--heldout-tokens", "0")
        p = weft("eval", "documents", self.path("held/model.gguf"), "-f", self.text, "-c", "48", "--json", env={**os.environ, "WEFT_EXACT": "1"})
        self.assertEqual(p.returncode, 0, p.stderr)
        report = json.loads(p.stdout)
        self.assertEqual(report["documents"], 24)
        self.assertAlmostEqual(report["nll"], self.points("held")[-1]["heldout"], delta=2e-3)
        self.assertAlmostEqual(report["ppl"], math.exp(report["nll"]), delta=1e-3)

    @of_files
    def test_a_finished_run_that_goes_on_tells_what_it_was(self):
        def report(*more):
            p = weft(*self.command("finished", "--steps", "3", "--json"), *more)
            self.assertEqual(p.returncode, 0, p.stderr)
            return json.loads(p.stdout)

        first, again = report(), report("--resume")
        self.assertEqual([again[k] for k in ("steps", "tokens", "parameters")], [first[k] for k in ("steps", "tokens", "parameters")])
        self.assertEqual(first["steps"], 3)
        self.assertGreater(first["tokens"], 0)
        self.assertGreater(again["seconds"], 0)
        self.assertIn("peak_gflops", first)  # of the last step
        self.assertNotIn("peak_gflops", again)  # no step was made, and none was measured
        p = weft(*self.command("finished", "--steps", "3", "--resume"))
        self.assertIn(f"3 steps, {first['tokens']} tokens".encode(), p.stderr)

    @of_files
    def test_texts_are_no_longer_than_the_base_was_made_for(self):
        def further(out, *more):
            return weft("train", self.text, "--base", self.model, "--out", self.path(out), "-b", "96", "--steps", "1", *more)

        p = further("longer", "-c", "49")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"was made for 48 (llama.context_length)", p.stderr)
        p = further("as-long")  # 48, for which a batch of 96 has room
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.bytes_of("as-long", "model.gguf"), self.bytes_of("said", "model.gguf") if further("said", "-c", "48").returncode == 0 else None)

    @of_files
    def test_what_is_wrong_is_named_before_anything_is_done(self):
        bad = self.write("bad.jsonl", "{\"text\": \"a fox\"}\n{\"messages\": []}\n")
        empty = self.write("none.jsonl", "\n")
        for args, status, words in (
                (self.command("base"), 1, b"holds a run already"),
                (self.command("fresh", "--resume"), 1, b"no checkpoint"),
                (self.command("base", "--resume", "--steps", "120", "--lr", "1e-2", "--seed", "9"), 1, b"other data"),
                (self.command("base", "--resume", "--steps", "121", "--lr", "1e-2"), 1, b"other steps"),
                (self.command("base", "--resume", "--steps", "120", "--lr", "1e-2", "--heads", "4", "--kv-heads", "2", "--head-dim", "8"), 1, b"another model"),
                (self.command("base", "--resume", "--steps", "120", "--lr", "1e-2", "--rope-base", "500"), 1, b"another model"),
                (["train", bad, "--tokenizer", self.vocab, "--out", self.path("fresh"), *SHAPE], 1, b"bad.jsonl:2: \"messages\" is no list"),
                (["train", empty, "--tokenizer", self.vocab, "--out", self.path("fresh"), *SHAPE], 1, b"nothing to learn"),
                (["train", self.vocab, "--tokenizer", self.vocab, "--out", self.path("fresh"), *SHAPE], 1, b"vocab.gguf: it is a GGUF file, not text"),
                (["train", self.text, "--out", self.path("fresh")], 2, b"give --tokenizer"),
                (["train", self.text, "--tokenizer", self.vocab], 2, b"--out is missing"),
                (self.command("fresh", "--optimizer", "magic"), 2, b"adamw, sgd or muon"),
                (self.command("fresh", "--steps", "0"), 2, b"from 1"),
                (["train", self.text, "--base", self.model, "--out", self.path("fresh"), "--layers", "3"], 2, b"are for a fresh model; leave them out"),
                (["train", self.text, "--base", self.model, "--out", self.path("fresh"), "--untied"], 2, b"are for a fresh model; leave them out"),
                (self.command("fresh", "-b", "47"), 1, b"batches of 47 tokens (-b) do not hold a text of 48 (-c); give larger ones"),
                (self.command("fresh", "--schedule", "one-cycle", "--warmup", "3"), 2, b"--warmup: one-cycle rises by itself"),
                (["train", self.text, "--tokenizer", self.path("nowhere.gguf"), "--out", self.path("fresh")], 1, b"nowhere.gguf")):
            p = weft(*args)
            self.assertEqual(p.returncode, status, (args, p.stderr))
            self.assertIn(words, p.stderr)


    @of_files
    def test_a_refused_run_leaves_nothing(self):
        empty = self.write("nothing.jsonl", "\n")
        wrong = ["train", empty, "--tokenizer", self.vocab, *SHAPE, "--out"]
        for out, made in (("unmade", False), ("made", True)):
            if made:
                os.mkdir(self.path(out))
            p = weft(*wrong, self.path(out))
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"nothing to learn", p.stderr)
            self.assertEqual(os.path.exists(self.path(out)), made)  # a folder that was there stays
        p = weft(*self.command("unmade", "--resume"))
        self.assertIn(b"no checkpoint", p.stderr)
        self.assertFalse(os.path.exists(self.path("unmade")))
        p = weft(*wrong, empty)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"nothing.jsonl is no folder", p.stderr)
        self.assertEqual(pathlib.Path(empty).read_text(encoding="utf-8"), "\n")


if __name__ == "__main__":
    main()
