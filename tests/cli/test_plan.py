# SPDX-License-Identifier: Apache-2.0
"""Claims about compiled plans: they stand wherever a model does, with the same results; what is damaged, cut off or made for another
tier is refused with a remedy; they start at once and share their pages; and about memory while weights are packed.
usage: test_plan.py build/weft"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from common import PATIENCE, SANITIZED, TINY_LLAMA, WEFT, check_report, leave_out, main, needs, needs_models, shared, skip_emulated, weft

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model"))
try:
    import hf_folder as hf
except ImportError:  # NumPy is missing
    hf = None

MIXTRAL = shared("models", "tiny-mixtral.f16.gguf")
IMAGE_AT = 2 << 20  # of a plan whose metadata are small


def done(*args, **kwargs):
    p = weft(*args, **kwargs)
    if p.returncode:
        raise AssertionError((args, p.stderr.decode()))
    return p


class Folder(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="weft-plan-")
        self.addCleanup(shutil.rmtree, self.dir, True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def tiny(self, kind="q4_0"):
        path = self.path("tiny.gguf")
        done("bench", "--synthetic", "tiny", "--type", kind, "--write", path)
        return path

    def compiled(self, model):
        path = self.path("model.plan")
        done("compile", model, path)
        return path

    def logits(self, model):
        out = self.path("logits")
        done("eval", "logits", model, "--tokens", " ".join(str(3 + 5 * i) for i in range(40)), "-o", out)
        with open(out, "rb") as f:
            return f.read()

    def refused(self, words, *args):
        p = weft(*args)
        self.assertEqual(p.returncode, 1, args)
        for word in words:
            self.assertIn(word, p.stderr.decode())
        return p


class Everywhere(Folder):
    def test_every_command_takes_a_plan(self):
        model = self.tiny()
        plan = self.compiled(model)
        self.assertEqual(sorted(os.listdir(self.dir)), ["model.plan", "tiny.gguf"])
        self.assertEqual(self.logits(model), self.logits(plan))
        text = self.path("text")
        with open(text, "w") as f:
            f.write("a b c d e f g h " * 60)
        for command in (["run", None, "hello", "-n", "12", "--temp", "0"], ["tokenize", None, "hello there"],
                        ["eval", "perplexity", None, "-f", text, "-c", "64"]):
            a, b = (done(*[m if x is None else x for x in command]) for m in (model, plan))
            self.assertTrue(a.stdout)
            self.assertEqual(a.stdout, b.stdout, command[0])
        rows = json.loads(done("bench", plan, "-p", "16", "-n", "4", "-r", "1", "-o", "json").stdout)
        self.assertEqual([row["model_type"] for row in rows], [row["model_type"] for row in json.loads(
            done("bench", model, "-p", "16", "-n", "4", "-r", "1", "-o", "json").stdout)])
        sums = []
        for m in (model, plan):
            done("imatrix", m, "-f", text, "-o", self.path("imatrix"), "-c", "64")
            with open(self.path("imatrix"), "rb") as f:
                sums.append(f.read())
        self.assertEqual(*sums)

    def test_info_tells_what_it_is(self):
        model = self.tiny()
        plan = self.compiled(model)
        p = done("info", plan, "--check")
        self.assertIn(b"compiled plan", p.stdout)
        self.assertIn(b"the checksums are right", p.stderr)
        a, b = (json.loads(done("info", m, "--json").stdout) for m in (model, plan))
        self.assertEqual(a["tensors"], b["tensors"])
        self.assertEqual({k: v for k, v in b["metadata"].items() if not k.startswith("weft.plan.")}, a["metadata"])
        self.assertIn("Q4_0", b["metadata"]["weft.plan.layout"])
        self.refused(["only compiled plans have checksums"], "info", model, "--check")

    @needs_models
    def test_conversations(self):
        template = self.path("template")
        with open(template, "w") as f:
            f.write("{% for m in messages %}{{ m.content }} {% endfor %}")
        a, b = (done("chat", m, "--chat-template", template, "-n", "10", "--temp", "0", stdin=b"Once upon\nand then\n").stdout
                for m in (TINY_LLAMA, self.compiled(TINY_LLAMA)))
        self.assertTrue(a)
        self.assertEqual(a, b)

    @needs_models
    def test_experts(self):
        self.assertEqual(self.logits(MIXTRAL), self.logits(self.compiled(MIXTRAL)))


@needs(hf, "python3-numpy is not installed")
class HuggingFace(Folder):
    BASE = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "tie_word_embeddings": False, "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 1}

    def same(self, class_name, fields):
        folder, config = self.path("folder"), {**self.BASE, **fields}
        os.mkdir(folder)
        hf.write_weights(folder, hf.random_weights(config, 5), "BF16")
        for name, value in (("config.json", {"architectures": [class_name], **config}), ("tokenizer_config.json", {"bos_token": "<s>"}),
                            ("tokenizer.json", hf.byte_level_tokenizer(hf.LLAMA3, ["<s>", "</s>", "<|end|>"], True, "<s>"))):
            with open(os.path.join(folder, name), "w") as f:
                json.dump(value, f)
        plan = self.compiled(folder)
        self.assertEqual(self.logits(folder), self.logits(plan))
        a, b = (done("tokenize", m, "hello world, the nation").stdout for m in (folder, plan))
        self.assertEqual(a, b)

    def test_a_folder(self):
        self.same("LlamaForCausalLM", {"model_type": "llama"})

    def test_a_folder_of_experts(self):
        self.same("Qwen3MoeForCausalLM", {"model_type": "qwen3_moe", "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 32,
                                          "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []})


class OtherTiers(Folder):
    """What an upgrade, or another machine, makes of a plan: another tier stands for both."""
    REF = dict(os.environ, WEFT_CPU="ref")

    def setUp(self):
        super().setUp()
        self.model = self.tiny()
        self.plan = self.path("model.plan")
        done("compile", self.model, self.plan, "--keep-weights")
        if "ref" in self.meta("layout"):
            self.skipTest("this processor has one tier only")

    def meta(self, key):
        return json.loads(done("info", self.plan, "--json").stdout)["metadata"]["weft.plan." + key]

    def run_ref(self, model, **kwargs):
        return weft("run", model, "hello", "-n", "12", "--temp", "0", env=self.REF, **kwargs)

    def read(self):
        with open(self.plan, "rb") as f:
            return f.read()

    def test_it_is_compiled_again_in_one_line(self):
        p = self.run_ref(self.plan)
        self.assertEqual((p.returncode, p.stdout), (0, self.run_ref(self.model).stdout), p.stderr)
        lines = [line for line in p.stderr.decode().splitlines() if "compiled again" in line]
        self.assertEqual(len(lines), 1, p.stderr)
        for word in (self.plan, os.path.realpath(self.model)):
            self.assertIn(word, lines[0])
        self.assertIn("matmul_q4_0_ref", self.meta("layout"))
        self.assertEqual((self.meta("keeps_weights"), self.meta("source")), (1, os.path.realpath(self.model)))
        before = self.read()
        self.assertNotIn(b"compiled again", self.run_ref(self.plan).stderr)
        self.assertEqual(self.read(), before)
        self.assertEqual(sorted(os.listdir(self.dir)), ["model.plan", "tiny.gguf"])

    def test_the_model_may_lie_beside_it(self):
        folder = self.path("moved")
        os.mkdir(folder)
        for path in (self.model, self.plan):
            os.rename(path, os.path.join(folder, os.path.basename(path)))
        self.plan = os.path.join(folder, "model.plan")
        p = self.run_ref(self.plan)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.meta("source"), os.path.realpath(os.path.join(folder, "tiny.gguf")))

    def test_it_is_refused_where_its_model_is_not_as_it_was(self):
        before = self.read()
        words = (self.plan, "packed for another tier or version", "matmul_q4_0_ref", "weft compile")
        changes = ((lambda: os.utime(self.model), "has changed since"), (lambda: os.remove(self.model), "is not there any more"))
        for change, why in changes:
            change()
            p = self.run_ref(self.plan)
            self.assertEqual((p.returncode, self.read()), (1, before))
            for word in (*words, why):
                self.assertIn(word, p.stderr.decode())

    def test_it_stays_where_it_cannot_be_written(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        before = self.read()
        p = subprocess.run(WEFT + ["run", self.plan, "hello", "-n", "1"], capture_output=True, timeout=PATIENCE, preexec_fn=small_files,
                           restore_signals=False, env=self.REF)
        self.assertEqual((p.returncode, self.read(), sorted(os.listdir(self.dir))), (1, before, ["model.plan", "tiny.gguf"]))
        for word in (b"packed for another tier or version", b"that failed", b"too large"):
            self.assertIn(word, p.stderr)


class Refused(Folder):
    def test_damage(self):
        plan = self.compiled(self.tiny())
        with open(plan, "rb") as f:
            whole = f.read()
        for at, when in ((9, "opened"), (60, "opened"), (300, "opened"), (IMAGE_AT + 1000, "checked"), (len(whole) - 1, "checked")):
            broken = bytearray(whole)
            broken[at] ^= 16
            with open(plan, "wb") as f:
                f.write(broken)
            if when == "opened":
                self.refused([plan, "weft compile"], "run", plan, "hello", "-n", "1")
            else:
                done("run", plan, "hello", "-n", "1", "--temp", "0")
                self.refused(["the plan is damaged", "packed weights", "weft compile"], "info", plan, "--check")
        for n in (8, 100, 1000, IMAGE_AT, len(whole) - 1):
            with open(plan, "wb") as f:
                f.write(whole[:n])
            self.refused([plan, "weft compile"], "run", plan, "hello", "-n", "1")
        with open(plan, "wb") as f:
            f.write(whole)
        done("info", plan, "--check")

    def test_plans_are_no_sources(self):
        plan, out = self.compiled(self.tiny()), self.path("out")
        self.refused(["is a compiled plan already"], "compile", plan, out)
        self.refused(["compiled plan"], "convert", plan, out)
        self.refused([plan, "is a compiled plan", "quantize the model that it was made of"], "quantize", plan, out, "Q8_0")
        self.assertFalse(os.path.exists(out))

    def test_no_room(self):
        model, out = self.tiny(), self.path("out.plan")

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        p = subprocess.run(WEFT + ["compile", model, out], capture_output=True, timeout=PATIENCE, preexec_fn=small_files, restore_signals=False)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"the disk is full or the file too large for it", p.stderr)
        self.refused(["/nowhere/out.plan"], "compile", model, "/nowhere/out.plan")
        self.assertEqual(os.listdir(self.dir), ["tiny.gguf"])


class Shortened(Folder):
    def shortened_in_use(self, path, n):
        """A conversation with a model whose file loses all but n bytes once it is open: what the program then says."""
        template = self.path("template")
        with open(template, "w") as f:
            f.write("{% for m in messages %}{{ m.content }} {% endfor %}")
        p = subprocess.Popen(WEFT + ["chat", path, "--chat-template", template, "-n", "4", "--temp", "0"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(b"/stats\n")
        p.stdin.flush()
        while b"context 0" not in p.stderr.readline():
            self.assertIsNone(p.poll())
        os.truncate(path, n)
        _, err = p.communicate(b"hello\n", timeout=PATIENCE)
        check_report(err)
        return p.returncode, err.decode()

    def test_what_is_made_shorter_in_use_is_named(self):
        """A mapped file that ends too early is no death by a signal that names nothing."""
        code, err = self.shortened_in_use(self.compiled(self.tiny()), 4096)
        self.assertEqual(code, 1, err)
        for word in (self.path("model.plan"), "made shorter", "restore the file"):
            self.assertIn(word, err)


def status(pid, key):
    """Bytes of a line of /proc/PID/status."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"^{key}:\s*(\d+) kB", f.read(), re.M).group(1)) * 1024


def mapped(pid, path):
    """Sums of /proc/PID/smaps over the mapping of a file, in bytes."""
    sums, inside = {}, False
    with open(f"/proc/{pid}/smaps") as f:
        for line in f:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                inside = line.rstrip().endswith(path)
            elif inside and line.endswith("kB\n"):
                key, value = line.split()[:2]
                sums[key[:-1]] = sums.get(key[:-1], 0) + int(value) * 1024
    return sums


@leave_out(SANITIZED, "sanitizers have memory of their own")
@needs(shutil.disk_usage(tempfile.gettempdir()).free > 3 << 30, "3 GB of disk for a model of 620 MB and its plan")
class LargeModel(unittest.TestCase):
    """TinyLlama's shape in Q4_0: 620 MB."""
    CTX = 512
    KV = 22 * 2 * 4 * 64 * 2 * CTX  # layers, keys and values, heads, their width, F16

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="weft-large-")
        cls.addClassCleanup(shutil.rmtree, cls.dir, True)
        cls.model, cls.plan = os.path.join(cls.dir, "model.gguf"), os.path.join(cls.dir, "model.plan")
        done("bench", "--synthetic", "tinyllama-1.1b", "--type", "q4_0", "--write", cls.model)
        p = subprocess.Popen(WEFT + ["compile", cls.model, cls.plan], stderr=subprocess.PIPE)
        p.stderr.read()
        cls.compiling = os.wait4(p.pid, 0)
        p.returncode = 0
        p.stderr.close()
        cls.bytes = os.path.getsize(cls.model)
        tensors = json.loads(done("info", cls.model, "--json").stdout)["tensors"]
        cls.largest = max(t["bytes"] for t in tensors)

    def start(self, model):
        """A process that has said its first token and goes on. How soon that is, bench/start says."""
        p = subprocess.Popen(WEFT + ["run", model, "Once upon a time", "-n", "400", "--ignore-eos", "--temp", "0", "-c", str(self.CTX)],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertTrue(p.stdout.read(1))
        return p

    def test_each_row_has_its_limit(self):
        """It is one of those that were measured. Which one binds, how much of it is reached, and that no share is beyond one, `make bench-record` says."""
        rows = json.loads(done("bench", self.plan, "-p", "32", "-n", "2", "-r", "1", "--no-warmup", "--roofline", "-o", "json").stdout)
        self.assertEqual([r["n_prompt"] for r in rows], [32, 0])
        for r in rows:
            self.assertIn(r["limit"], ("read", "int8 dot", "bf16 dot", "f32 FMA"))
            self.assertGreater(r["share"], 0)

    def test_memory_while_packing(self):
        p = self.start(self.model)
        peak, after = status(p.pid, "VmHWM"), status(p.pid, "VmRSS")
        print(f"file {self.bytes / 1e6:.0f} MB: peak {peak / 1e6:.0f} MB, then {after / 1e6:.0f} MB")
        self.assertLess(peak, 1.1 * self.bytes + self.largest)
        self.assertLess(after, 1.1 * self.bytes + self.KV)

    def test_memory_while_compiling(self):
        _, outcome, usage = self.compiling
        self.assertEqual(outcome, 0)
        self.assertLess(usage.ru_maxrss * 1024, 1.1 * self.bytes + self.largest)

    def test_damage_anywhere_is_found(self):
        """A large plan is written and checked in pieces."""
        done("info", self.plan, "--check")
        n = os.path.getsize(self.plan)
        for at in (n // 3, n // 2 + 12345, n - 1):
            with open(self.plan, "r+b") as f:
                for damaged in (True, False):
                    f.seek(at)
                    byte = f.read(1)[0]
                    f.seek(at)
                    f.write(bytes([byte ^ 4]))
                    f.flush()
                    p = weft("info", self.plan, "--check")
                    self.assertEqual((p.returncode, b"the plan is damaged" in p.stderr), (int(damaged), damaged), (at, p.stderr))

    def test_who_is_stopped_leaves_nothing(self):
        compiling, writing = ["compile", self.model], ["bench", "--synthetic", "tinyllama-1.1b", "--type", "q4_0", "--write"]
        for command, number in ((compiling, signal.SIGINT), (compiling, signal.SIGTERM), (writing, signal.SIGINT)):
            with tempfile.TemporaryDirectory(dir=self.dir) as folder:
                p = subprocess.Popen(WEFT + [*command, os.path.join(folder, "out")], stderr=subprocess.PIPE)
                while not os.listdir(folder) and p.poll() is None:
                    time.sleep(0.001)
                p.send_signal(number)
                err = p.communicate(timeout=PATIENCE)[1]
                self.assertEqual((p.returncode, os.listdir(folder)), (1, []), err)
                self.assertIn(b"cancelled while writing", err)

    def test_memory_of_a_plan(self):
        p = self.start(self.plan)
        self.assertLess(status(p.pid, "VmHWM"), 1.1 * self.bytes + self.KV)
        self.assertLess(status(p.pid, "RssAnon"), 0.1 * self.bytes + self.KV)

    def test_two_processes_share_the_pages(self):
        both = [self.start(self.plan) for _ in range(2)]
        for p in both:
            sums = mapped(p.pid, self.plan)
            print(f"plan: Rss {sums['Rss'] / 1e6:.0f} MB, Pss {sums['Pss'] / 1e6:.0f} MB")
            self.assertGreater(sums["Rss"], 0.9 * self.bytes)
            self.assertLess(sums["Pss"], 0.55 * sums["Rss"])
            self.assertLess(sums["Private_Clean"] + sums["Private_Dirty"], 0.05 * sums["Rss"])


if __name__ == "__main__":
    skip_emulated("opening a model dozens of times takes many minutes; tests/unit/plan_file.c and tests/model/plan.c are")
    main()
