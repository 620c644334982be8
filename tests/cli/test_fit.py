# SPDX-License-Identifier: Apache-2.0
"""weft fit tells the sizes that files and shapes will have, of a repository by the heads of its files alone; more memory never means less
context or fewer slots; weft pull without a quantization asks it, and run pulls what is
missing when it is told to; adapters are tried on what is here; known models have short names, which a user can add to.

usage: test_fit.py build/weft"""
import json
import os
import shutil
import subprocess
import tempfile

from common import EMULATED, TINY_LLAMA, WEFT, leave_out, main, needs_models, shared
from pull_case import Case

PADDING = 3_000_000  # behind the tensors: so that heads are a small part of a file
PARTS = ("packed_bytes", "own_bytes", "steps_bytes", "pages_bytes", "scratch_bytes", "kv_pages")


class Fit(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="weft-fit-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.models = {}
        for kind, name in (("q4_k", "m-Q4_K_M.gguf"), ("q8_0", "m-Q8_0.gguf"), ("f16", "m-F16.gguf")):
            path = os.path.join(cls.folder, name)
            out = subprocess.run([*WEFT, "bench", "--synthetic", "tiny", "--type", kind, "--write", path], capture_output=True)
            assert out.returncode == 0, out.stderr
            with open(path, "ab") as f:
                f.write(bytes(PADDING))
            with open(path, "rb") as f:
                cls.models[name] = f.read()
        cls.repos = {"owner/several": cls.models, "owner/one": {"m-Q8_0.gguf": cls.models["m-Q8_0.gguf"]},
                     "owner/noise": {"a-Q4_K_M.gguf": b"noise" * 100, "a-Q8_0.gguf": b"more" * 300}}

    def setUp(self):
        super().setUp()
        self.heads = tempfile.mkdtemp(dir=self.folder)

    def fit(self, *args, code=0, measure=False):
        p = self.weft("fit", "--json", *args, *([] if measure else ["--no-measure"]), TMPDIR=self.heads)
        self.assertEqual(p.returncode, code, p.stderr)
        self.assertEqual(os.listdir(self.heads), [])
        return json.loads(p.stdout)

    def case(self, told, name):
        return next(c for c in told["cases"] if c["quantization"] == name)

    def test_a_shape_and_its_file_have_the_same_sizes_and_those_of_the_loaded_model(self):
        shape = self.fit("tiny", "-t", "2")
        for name, file in (("Q8_0", "m-Q8_0.gguf"), ("Q4_K", "m-Q4_K_M.gguf")):
            path = os.path.join(self.folder, file)
            told = self.fit(path, "-t", "2")["cases"][0]
            self.assertEqual({p: told[p] for p in PARTS}, {p: self.case(shape, name)[p] for p in PARTS})
            plan = self.weft("info", path, "--plan").stdout.decode()
            self.assertIn("packed weights %.1f MB" % (told["packed_bytes"] / 1e6), plan)

    def test_more_memory_is_never_less(self):
        path = os.path.join(self.folder, "m-Q8_0.gguf")
        least = self.fit(path)["cases"][0]["needed_bytes"]
        seen, before = [], (False, 0, 0)
        for memory in (least // 2, least - 1, least, least + 2_000_000, 2 * least, 8 * least):
            told = self.fit(path, "--memory", str(memory), code=0 if memory >= least else 1)
            now = (told["cases"][0]["fits"], told["cases"][0]["context_most"], told["cases"][0]["slots_most"])
            self.assertEqual(told["room_bytes"], memory)
            self.assertTrue(all(n >= b for n, b in zip(now, before)), (now, before))
            self.assertEqual(told["choice"] is not None, now[0])
            before = now
            seen.append(now)
        self.assertEqual([s[0] for s in seen], [False, False, True, True, True, True])
        self.assertEqual(seen[-1][1], 2048)  # all that the model has
        self.assertGreater(seen[-1][2], seen[2][2])

    def test_of_a_repository_heads_alone_are_fetched(self):
        told = self.fit("owner/several", measure=not EMULATED)
        self.assertLess(self.server.sent, 3 * (1 << 20) + 10_000)
        self.assertEqual([c["quantization"] for c in told["cases"]], ["Q4_K_M", "Q8_0", "F16"])
        for c in told["cases"]:
            own = self.fit(os.path.join(self.folder, c["file"]))["cases"][0]
            self.assertEqual({p: c[p] for p in PARTS}, {p: own[p] for p in PARTS})
            self.assertEqual(c["file_bytes"], len(self.models[c["file"]]))
        if EMULATED:
            return
        self.assertEqual(told["choice"], "Q8_0")  # floats are none where there are others
        for c in told["cases"]:
            for rate in (c["generation"], c["prompt"]):
                self.assertTrue(0 < rate["least"] and (rate["most"] is None or rate["least"] < rate["most"]), rate)
        self.assertEqual(self.fit("owner/several")["choice"], "Q4_K_M")  # without rates: the best for its size
        self.assertEqual(len(self.fit("owner/several:q4_k_m")["cases"]), 1)
        text = self.weft("fit", "owner/several", "--no-measure").stdout.decode()
        self.assertIn("* Q4_K_M", text)

    def test_a_server_without_ranges_and_one_that_breaks_off(self):
        whole = self.fit("owner/several:Q8_0")["cases"][0]
        self.server.on_file = lambda request, path, n: request.send_file(self.models[path], ranges=False)
        self.assertEqual(self.fit("owner/several:Q8_0")["cases"][0]["packed_bytes"], whole["packed_bytes"])
        self.server.on_file = lambda request, path, n: request.send_file(self.models[path], stop_after=5000 if n < 4 else None)
        self.assertEqual(self.fit("owner/several:Q8_0")["cases"][0]["packed_bytes"], whole["packed_bytes"])

    def test_what_cannot_be_read_is_told(self):
        told = self.fit("owner/noise", code=1)
        self.assertEqual(told["choice"], None)
        self.assertIn("GGUF", told["cases"][0]["why"])
        for args, word in ((("nowhere/nothing",), b"nowhere"), (("no-such-shape",), b"tinyllama"), (("tiny", "--memory", "lots"), b"--memory"),
                           (("tiny", "-c", "1000000"), b" at most")):
            p = self.weft("fit", *args, "--no-measure")
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(word, p.stderr)

    @leave_out(EMULATED, "half a gigabyte is read by emulated instructions")
    def test_pull_takes_what_fits_and_says_why(self):
        p = self.weft("pull", "owner/several")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue(p.stdout.decode().rstrip().endswith("m-Q8_0.gguf"), p.stdout)
        self.assertIn(b"Q8_0: the best that fits", p.stderr)
        sent = self.server.sent
        self.assertEqual(self.weft("pull", "owner/several").returncode, 0)  # the same one, and nothing is fetched
        self.assertEqual((self.files(), self.server.sent), (["owner/several/m-Q8_0.gguf"], sent))
        self.pulled("owner/noise", b"noise" * 100)  # no head says anything: the order of names

    def test_run_pulls_only_when_told_to(self):
        p = self.weft("run", "owner/one", "Once", "-n", "2")
        self.assertEqual((p.returncode, self.files()), (1, []))
        self.assertIn(b"weft pull", p.stderr)
        p = self.weft("run", "owner/one", "Once", "-n", "2", "--pull")
        self.assertEqual((p.returncode, self.files()), (0, ["owner/one/m-Q8_0.gguf"]), p.stderr)
        sent = self.server.sent
        self.assertEqual(self.weft("run", "owner/one", "Once", "-n", "2", "--pull").returncode, 0)
        self.assertEqual(self.server.sent, sent)

    def test_on_a_terminal_run_asks(self):
        import pty
        for answer, pulled in (("n\n", []), ("\n", ["owner/one/m-Q8_0.gguf"])):
            main_end, theirs = pty.openpty()
            p = subprocess.Popen([*WEFT, "run", "owner/one", "Once", "-n", "2"], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
                                 env=self.environment())
            os.close(theirs)
            seen = b""
            while b"[Y/n]" not in seen:
                seen += os.read(main_end, 4096)
            os.write(main_end, answer.encode())
            try:
                while os.read(main_end, 4096):
                    pass
            except OSError:
                pass  # the other end is closed
            p.communicate()
            os.close(main_end)
            self.assertEqual(self.files(), pulled)
            self.assertEqual(p.returncode, 0 if pulled else 1)

    def test_a_file_that_is_misspelled_is_not_asked_for(self):
        """Where OWNER is a folder here, a path was meant."""
        import pty
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "owner"))
            main_end, theirs = pty.openpty()
            p = subprocess.Popen([*WEFT, "run", "owner/one", "Once", "-n", "2"], stdin=theirs, stdout=theirs, stderr=theirs,
                                 cwd=folder, env=self.environment())
            os.close(theirs)
            seen = b""
            try:
                while b"[Y/n]" not in seen and (more := os.read(main_end, 4096)):
                    seen += more
            except OSError:
                pass  # the other end is closed
            os.close(main_end)
            p.kill()
            p.wait()
        self.assertNotIn(b"[Y/n]", seen)
        self.assertIn(b"no such file or folder", seen)
        self.assertEqual(self.files(), [])


def adapters():
    """A base, its GGUF adapter, and the same as a PEFT folder."""
    with open(TINY_LLAMA, "rb") as f:
        base = f.read()
    with open(shared("models", "tiny-llama.lora-a.gguf"), "rb") as f:
        lora = f.read()
    with tempfile.TemporaryDirectory() as folder:
        peft = os.path.join(folder, "peft")
        subprocess.run([*WEFT, "adapter", "convert", shared("models", "tiny-llama.lora-a.gguf"), peft, "--base", TINY_LLAMA], check=True,
                       capture_output=True)
        files = {}
        for name in os.listdir(peft):
            with open(os.path.join(peft, name), "rb") as f:
                files[name] = f.read()
    config = json.loads(files["adapter_config.json"])
    files["adapter_config.json"] = json.dumps({**config, "base_model_name_or_path": "owner/original"}).encode()
    return base, lora, {**files, "README.md": b"hello", "optimizer.pt": b"pickle"}


@needs_models
class Adapters(Case):
    def test_an_adapter_is_pulled_and_tried_on_the_models_that_are_here(self):
        base, lora, peft = adapters()
        self.server.repos = {"owner/base": {"base-f16.gguf": base}, "owner/lora": {"lora.gguf": lora}, "owner/peft": peft}
        p = self.weft("pull", "owner/lora")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"no model was pulled yet", p.stderr)
        p = self.weft("pull", "owner/base")
        self.assertNotIn(b"adapter", p.stderr)
        p = self.weft("pull", "owner/peft")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"an adapter of owner/original; it fits owner/base:base-f16.gguf (weft run, chat and serve have --adapter ", p.stderr)
        self.assertEqual(sorted(os.listdir(self.place("owner", "peft"))), [".weft.json", "adapter_config.json", "adapter_model.safetensors"])
        self.assertEqual(self.weft("run", "owner/base", "Once", "-n", "2", "--adapter", "a=" + p.stdout.decode().strip()).returncode, 0)
        self.assertIn(b"it fits owner/base:base-f16.gguf", self.weft("pull", "owner/lora").stderr)
        self.weft("rm", "owner/base")
        other = os.path.join(self.cache, "other.gguf")
        self.weft("bench", "--synthetic", "tiny-128", "--write", other)
        with open(other, "rb") as f:
            self.server.repos["owner/base"] = {"other-q4_0.gguf": f.read()}
        self.weft("pull", "owner/base")
        self.assertIn(b"fits none of the 1 models", self.weft("pull", "owner/lora").stderr)


class Known(Case):
    repos = {"owner/one": {"m-Q8_0.gguf": b"noise" * 10}}

    def known(self, **more):
        p = self.weft("pull", "--known", "--json", XDG_CONFIG_HOME=os.path.join(self.cache, "config"), **more)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def write(self, text):
        os.makedirs(os.path.join(self.cache, "config", "weft"), exist_ok=True)
        with open(os.path.join(self.cache, "config", "weft", "known.json"), "w") as f:
            f.write(text)

    def test_each_line_says_where_it_was_read(self):
        listed = self.known()
        self.assertGreaterEqual(len(listed), 30)
        self.assertEqual(len({m["name"] for m in listed}), len(listed))
        for m in listed:
            self.assertRegex(m["repository"], r"^[\w.-]+/[\w.-]+$")
            self.assertTrue(m["source"].startswith("huggingface.co/"), m)
            self.assertTrue(m["repository"] in m["source"] or "/collections/" in m["source"], m)
            self.assertNotIn("/", m["name"])
        text = self.weft("pull", "--known").stdout.decode()
        self.assertEqual(len(text.splitlines()), len(listed))
        for m, line in zip(listed, text.splitlines()):
            self.assertIn(f" {m['licence'] or 'licence not read'} ", line)

    def test_a_users_list_goes_before_it(self):
        n = len(self.known())
        self.write(json.dumps([{"name": "mine", "repository": "owner/one", "licence": "mit"}, {"name": "qwen3-8b", "repository": "owner/one"}]))
        listed = self.known()
        self.assertEqual(len(listed), n + 1)
        self.assertEqual([m["repository"] for m in listed if m["own"]], ["owner/one", "owner/one"])
        for name in ("mine", "MINE:q8_0", "qwen3-8b"):
            p = self.weft("pull", name, XDG_CONFIG_HOME=os.path.join(self.cache, "config"))
            self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual([m["bytes_here"] for m in self.known() if m["own"]], [50, 50])
        for wrong in ("[", "{}", '[{"name": "a/b", "repository": "owner/one"}]', '[{"name": "a", "repository": "one"}]'):
            self.write(wrong)
            p = self.weft("pull", "--known", XDG_CONFIG_HOME=os.path.join(self.cache, "config"))
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"known.json", p.stderr)

    def test_known_names_are_models_everywhere(self):
        """Where a command says MODEL, a short name is one; a file of that name goes before it."""
        path = os.path.join(self.cache, "t.gguf")
        self.assertEqual(self.weft("bench", "--synthetic", "tiny", "--type", "q8_0", "--write", path).returncode, 0)
        with open(path, "rb") as f:
            self.server.repos = {"owner/mine": {"m-Q8_0.gguf": f.read()}}
        self.write(json.dumps([{"name": "mine", "repository": "owner/mine"}]))
        own = {"XDG_CONFIG_HOME": os.path.join(self.cache, "config")}
        p = self.weft("run", "mine", "Once", "-n", "2", **own)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"owner/mine", p.stderr)  # and how to pull it
        p = self.weft("run", "mine", "Once", "-n", "2", "--pull", **own)
        self.assertEqual((p.returncode, self.files()), (0, ["owner/mine/m-Q8_0.gguf"]), p.stderr)
        config = os.path.join(self.cache, "weft.yaml")
        with open(config, "w") as f:
            f.write("models:\n  a:\n    path: mine\n")
        for args in (("info", "mine"), ("info", "MINE:q8_0"), ("chat", "mine"), ("run", "mine", "Once", "-n", "2", "--draft", "mine"),
                     ("tokenize", "mine", "x"), ("quantize", "mine", os.path.join(self.cache, "q"), "Q4_0"),
                     ("serve", "--check", "--config", config), ("fit", "mine", "--no-measure")):
            p = self.weft(*args, **own)
            self.assertEqual(p.returncode, 0, (args, p.stderr))
        for args in (("mine", "--queue", "1"), ("--model", "a=mine", "--pin", "a")):  # it goes as far as its socket
            p = self.weft("serve", *args, "--unix", os.path.join(self.cache, "no", "s"), **own)
            self.assertEqual((p.returncode, b"mine: " in p.stderr, b"no/s" in p.stderr), (1, False, True), p.stderr)
        here = os.path.join(self.cache, "here")
        os.mkdir(here)
        with open(os.path.join(here, "mine"), "w") as f:
            f.write("no model")
        p = subprocess.run([*WEFT, "info", "mine"], capture_output=True, cwd=here, env=self.environment(**own))
        self.assertNotEqual(p.returncode, 0)
        self.assertNotIn(b"owner/mine", p.stderr)
        p = self.weft("rm", "mine", **own)
        self.assertEqual((p.returncode, self.files()), (0, []), p.stderr)

    def test_a_shape_goes_before_a_known_model(self):
        """It asks no network, and which one it is, is told."""
        p = self.weft("fit", "qwen3-4b", "--no-measure", "--memory", "64G", "--json", HF_ENDPOINT="http://127.0.0.1:9")
        self.assertEqual(p.returncode, 0, p.stderr)
        told = json.loads(p.stdout)
        self.assertGreater(len(told["cases"]), 5)
        self.assertEqual((told["threads"], told["read_gb_s"]), (None, None))  # nothing was measured
        self.assertIn(b"ggml-org/Qwen3-4B-GGUF", p.stderr)
        p = self.weft("fit", "nosuch.gguf", "--no-measure")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"nosuch.gguf: No such file", p.stderr)
        self.assertNotIn(b"shape", p.stderr)

    def test_bash_completes_models_and_values(self):
        self.weft("pull", "owner/one")
        script = 'source <(%s completion bash)\nweft() { %s "$@"; }\nCOMP_WORDS=(%s) COMP_CWORD=%d\n_weft\nprintf "%%s\\n" "${COMPREPLY[@]}"'

        def completed(*words):
            text = script % (WEFT[-1], WEFT[-1], " ".join(words), len(words) - 1)
            return subprocess.run(["bash", "-c", text], capture_output=True, env=self.environment(), cwd=self.cache).stdout.decode().split()

        self.assertEqual(completed("weft", "run", "own"), ["owner/one", "owner/one:m-Q8_0.gguf"])
        self.assertEqual(completed("weft", "run", "x", "--kv-type", "f"), ["f16", "f32", "f8"])
        self.assertEqual(completed("weft", "run", "x", "--kv-type", "f3"), ["f32"])
        self.assertEqual(completed("weft", "tokenize", "--nothing"), [])
        for shell, words in (("zsh", ("(f16 f32 bf16 f8 q8 q4)", "_weft_models")), ("fish", ("-a 'f16 f32 bf16 f8 q8 q4'", "weft list --names"))):
            text = self.weft("completion", shell).stdout.decode()
            for word in words:
                self.assertIn(word, text)


if __name__ == "__main__":
    main()
