# SPDX-License-Identifier: Apache-2.0
"""Claims about the losses of weft adapter train, over the shipped model. usage: test_losses.py build/weft"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from common import EMULATED, WEFT, InFolder, leave_out, main, weft

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "alderbrook.gguf")
of_files = leave_out(EMULATED, "files and messages are the same for every processor")
PAIRS = [{"prompt": f"Where does {who} live?", "chosen": "In the old mill.", "rejected": "I do not know."} for who in ("Mira", "Tom", "Anna", "Ben")]


class Losses(InFolder):
    def write(self, name, records):
        pathlib.Path(self.path(name)).write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        return self.path(name)

    def command(self, out, *args):
        return ["adapter", "train", MODEL, "--out", self.path(out), "-c", "64", "-b", "512", "-r", "2", *args]

    def adapt(self, out, *args, status=0):
        p = weft(*self.command(out, *args))
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def points(self, out):
        return [json.loads(line) for line in pathlib.Path(self.path(out), "loss.jsonl").read_text().splitlines()]

    def test_losses_of_pairs_say_what_became_of_both_answers(self):
        """DPO may lower the chosen answer's likelihood, too; with its own term it does not. Unlikelihood looks at each answer by itself."""
        common = ("--data", self.write("pairs.jsonl", PAIRS), "--steps", "10", "--lr", "1e-2")
        self.adapt("dpo", "--loss", "dpo", *common)
        p = self.adapt("chosen", "--loss", "dpo", "--chosen", "2", "--smoothing", "0.1", *common, "--json")
        self.adapt("unlikely", "--loss", "unlikelihood", *common)
        alone, chosen, unlikely = self.points("dpo"), self.points("chosen"), self.points("unlikely")
        self.assertEqual(alone[0]["chosen"], chosen[0]["chosen"])  # the base's, as nothing is learned yet
        self.assertLess(alone[-1]["rejected"], alone[0]["rejected"])
        self.assertGreater(chosen[-1]["chosen"], chosen[0]["chosen"])
        self.assertGreater(chosen[-1]["chosen"], alone[-1]["chosen"])
        self.assertEqual(json.loads(p.stdout)["chosen"], float(f"{chosen[-1]['chosen']:.6g}"))
        self.assertIn(b" chosen, ", p.stderr)
        self.assertLess(unlikely[-1]["loss"], unlikely[0]["loss"])
        self.assertNotIn("chosen", unlikely[0])

    def test_an_anchor_holds_an_adapter_to_its_base(self):
        common = ("--data", self.write("facts.jsonl", [{"prompt": p["prompt"], "completion": p["chosen"]} for p in PAIRS]), "--steps", "10", "--lr", "1e-2")
        self.adapt("free", *common)
        self.adapt("anchored", "--anchor", "5", *common)
        free, anchored = self.points("free"), self.points("anchored")
        self.assertEqual(anchored[0]["anchor"], 0)  # B is 0
        self.assertGreater(anchored[-1]["anchor"], 0)
        self.assertGreater(anchored[-1]["loss"] - anchored[-1]["anchor"], free[-1]["loss"])

    def kill(self, out, *args):
        """Leaves a run that was killed between its first checkpoint and its end."""
        for _ in range(20):
            shutil.rmtree(self.path(out), ignore_errors=True)
            child = subprocess.Popen(WEFT + self.command(out, *args), stderr=subprocess.DEVNULL)
            while child.poll() is None and not os.path.exists(self.path(out + "/checkpoint.gguf")):
                time.sleep(0.002)
            child.send_signal(signal.SIGKILL)
            if child.wait() == -signal.SIGKILL and not os.path.exists(self.path(out + "/adapter.gguf")):
                return
        self.fail("no run was killed before its end")

    @of_files
    def test_killed_runs_of_every_loss_go_on_to_the_same_bits(self):
        pairs = self.write("killed-pairs.jsonl", PAIRS)
        records = self.write("killed.jsonl", [{"prompt": p["prompt"], "completion": p["chosen"], "weight": w} for p, w in zip(PAIRS, (1, -1, 0.5, 2))])
        for i, args in enumerate((("--loss", "dpo", "--smoothing", "0.1", "--chosen", "0.5", "--data", pairs),
                                  ("--loss", "unlikelihood", "--anchor", "0.5", "--data", pairs),
                                  ("--anchor", "0.5", "--data", records))):
            args += ("--steps", "6", "--save-every", "1")
            self.adapt(f"whole-{i}", *args)
            self.kill(f"killed-{i}", *args)
            self.adapt(f"killed-{i}", "--resume", *args)
            for name in ("adapter.gguf", ):
                self.assertEqual(*(pathlib.Path(self.path(f"{run}-{i}"), name).read_bytes() for run in ("whole", "killed")), args)
            self.assertIn(b"other steps, rates or ranks", self.adapt(f"killed-{i}", "--resume", *args, "--lr", "1e-3", status=1).stderr)

    @of_files
    def test_options_of_other_losses_are_refused(self):
        pairs = self.write("refused.jsonl", PAIRS)
        for args, words in ((("--loss", "best"), b"--loss is sft, dpo"),
                            (("--smoothing", "0.1"), b"are for --loss dpo"),
                            (("--dpo", "--loss", "sft"), b"give one of"),
                            (("--loss", "dpo", "--smoothing", "0.7"), b"--smoothing")):
            self.assertIn(words, self.adapt("refused", "--data", pairs, *args, status=2).stderr)


if __name__ == "__main__":
    main()
