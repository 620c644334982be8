# SPDX-License-Identifier: Apache-2.0
"""Claims about Hugging Face folders: every architecture gives the logits of a plain forward pass in double precision, from the folder
itself and from the GGUF file that `weft convert` makes of it; and what is malformed is refused by name.

usage: hf_reference.py build/weft [unittest options]. Exit status 77: NumPy is missing."""
import copy
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIP: python3-numpy is not installed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
import common  # noqa: E402
import gguf_file  # noqa: E402
import hf_folder as hf  # noqa: E402

ENV = dict(os.environ, WEFT_CPU="ref")
TEXTS = ["hello world", "  The  theater, in her nation\n\n1234 567 <|end|></s><s>x", "\u2581 caf\u00e9 \U0001f600 the", ""]


def weft(*args, stdin=b""):
    return common.weft(*args, stdin=stdin, env=ENV)


def nmse(a, b):
    return float(np.sum((a - b) ** 2) / np.sum(b ** 2))


BASE = {"vocab_size": hf.V, "hidden_size": hf.D, "intermediate_size": hf.F, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 1}
LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
SHARP_YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16, "beta_fast": 1.0, "beta_slow": 0.25}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
GEMMA2 = {"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 16, "sliding_window": 8,
          "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "tie_word_embeddings": True}
GEMMA3 = {"model_type": "gemma3_text", "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 16, "sliding_window": 8,
          "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0, "tie_word_embeddings": True, "num_hidden_layers": 7}
LONGROPE = {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.5, 1.9, 2.4], "long_factor": [1.0, 1.5, 2.5, 4.0, 8.0, 16.0]}


class Case:
    """A folder: class in `architectures`, fields of config.json, how the weights are stored, which tokenizer."""

    def __init__(self, name, class_name, fields, dtype="F32", tokenizer="bpe", arch=None, **how):
        self.name, self.class_name, self.dtype, self.tokenizer, self.how = name, class_name, dtype, tokenizer, how
        self.arch = arch or fields["model_type"]
        self.config = {**BASE, **fields}

    def write(self, folder):
        """Returns the weights as stored."""
        c = self.how.get("rewrite", lambda c: c)({"architectures": [self.class_name], **self.config})
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(c, f)
        tensors = hf.random_weights(self.config, sum(map(ord, self.name)))
        renamed = {self.how.get("rename", lambda n: n)(n): a for n, a in tensors.items()}
        renamed.update(self.how.get("extra", {}))
        values = hf.write_weights(folder, renamed, self.dtype, self.how.get("shards", 1), self.how.get("pad", True))
        self.write_tokenizer(folder)
        return {n: values[self.how.get("rename", lambda n: n)(n)] for n in tensors}

    def write_tokenizer(self, folder):
        config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": "{{ bos_token }}old"}
        if self.tokenizer == "spm":
            with open(os.path.join(folder, "tokenizer.model"), "wb") as f:
                f.write(hf.spm_model())
            config["added_tokens_decoder"] = {"310": {"content": "<|end|>", "special": True}}
        else:
            byte_level = {"bpe": lambda: hf.byte_level_tokenizer(hf.LLAMA3, ["<s>", "</s>", "<|end|>"], True, "<s>"),
                          "qwen": lambda: hf.byte_level_tokenizer(hf.QWEN2, ["<s>", "</s>", "<|end|>"]),
                          "spm-json": hf.spm_style_tokenizer, "spm-json-bare": lambda: hf.spm_style_tokenizer(False)}
            with open(os.path.join(folder, "tokenizer.json"), "w") as f:
                json.dump(byte_level[self.tokenizer](), f)
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
            json.dump(config, f)
        with open(os.path.join(folder, "chat_template.jinja"), "w") as f:
            f.write("{{ bos_token }}new")
        with open(os.path.join(folder, "generation_config.json"), "w") as f:
            json.dump({"eos_token_id": [2, 310] if "spm" in self.tokenizer else [1, 290]}, f)


def nested(c):
    """As Gemma 3 with eyes: the language model's fields in text_config."""
    text = {k: v for k, v in c.items() if k not in ("architectures", "tie_word_embeddings")}
    return {"architectures": c["architectures"], "model_type": "gemma3", "text_config": text, "vision_config": {}}


def rope_parameters(c):
    """As newer configurations have it."""
    c = copy.deepcopy(c)
    c["rope_parameters"] = {**(c.pop("rope_scaling", None) or {"rope_type": "default"}), "rope_theta": c.pop("rope_theta")}
    return c


EYES = {"vision_tower.patch.weight": np.ones((3, 3)), "multi_modal_projector.mm.weight": np.ones((2, 2))}
CASES = [
    Case("llama", "LlamaForCausalLM", {"model_type": "llama", "rope_scaling": LLAMA3_ROPE, "attention_bias": True}, shards=3),
    Case("llama-tied", "LlamaForCausalLM", {"model_type": "llama", "tie_word_embeddings": True, "num_key_value_heads": 4,
         "rope_scaling": {"type": "linear", "factor": 2.0}}, dtype="BF16", tokenizer="spm"),
    Case("llama-unaligned", "LlamaForCausalLM", {"model_type": "llama", "head_dim": 24}, tokenizer="spm-json", pad=False),
    Case("mistral", "MistralForCausalLM", {"model_type": "mistral", "sliding_window": 8, "head_dim": 24}, dtype="F16", tokenizer="spm-json",
         arch="llama"),
    Case("mixtral", "MixtralForCausalLM", {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
         dtype="BF16", tokenizer="spm-json", arch="llama"),
    Case("mixtral-window", "MixtralForCausalLM", {"model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 1, "sliding_window": 7,
         "rope_scaling": {**YARN, "factor": 2.0}, "rope_theta": 500.0}, tokenizer="spm-json", arch="llama"),
    Case("llama-yarn", "LlamaForCausalLM", {"model_type": "llama", "rope_scaling": SHARP_YARN, "head_dim": 32}),
    Case("qwen2", "Qwen2ForCausalLM", {"model_type": "qwen2", "tie_word_embeddings": True, "rope_scaling": YARN, "use_sliding_window": False,
         "sliding_window": 8}, tokenizer="qwen"),
    Case("qwen3", "Qwen3ForCausalLM", {"model_type": "qwen3", "head_dim": 32}, dtype="BF16", tokenizer="qwen"),
    Case("qwen3-new", "Qwen3ForCausalLM", {"model_type": "qwen3", "rope_scaling": {**YARN, "attention_factor": 1.25}}, tokenizer="qwen",
         rewrite=rope_parameters),
    Case("qwen3moe", "Qwen3MoeForCausalLM", {"model_type": "qwen3_moe", "num_experts": 6, "num_experts_per_tok": 3,
         "moe_intermediate_size": 32, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}, tokenizer="qwen", arch="qwen3moe"),
    Case("phi3", "Phi3ForCausalLM", {"model_type": "phi3", "sliding_window": 8, "pad_token_id": 1}, dtype="BF16", tokenizer="spm-json"),
    Case("phi3-long", "Phi3ForCausalLM", {"model_type": "phi3", "rope_scaling": LONGROPE, "original_max_position_embeddings": 32,
         "partial_rotary_factor": 0.75, "pad_token_id": 1, "tie_word_embeddings": True}, tokenizer="qwen"),
    Case("gemma2", "Gemma2ForCausalLM", GEMMA2, dtype="BF16", tokenizer="spm-json-bare"),
    Case("gemma3", "Gemma3ForCausalLM", {**GEMMA3, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}, tokenizer="spm-json-bare", arch="gemma3"),
    Case("gemma3-eyes", "Gemma3ForConditionalGeneration", GEMMA3, dtype="BF16", tokenizer="spm-json-bare", arch="gemma3", rewrite=nested,
         rename=lambda n: "language_model." + n, extra=EYES),
    Case("gemma3-eyes-new", "Gemma3ForConditionalGeneration", GEMMA3, tokenizer="spm-json-bare", arch="gemma3", rewrite=nested,
         rename=lambda n: n.replace("model.", "model.language_model.", 1), extra={"model." + n: a for n, a in EYES.items()}),
]


NAMED = {case.name: case for case in CASES}


class Folder(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="weft-hf-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.folder = os.path.join(self.dir, "model")
        os.mkdir(self.folder)

    def path(self, name):
        return os.path.join(self.dir, name)

    def logits(self, model, tokens, *options):
        out = self.path("logits.f32")
        p = weft("eval", "logits", model, "--tokens", " ".join(map(str, tokens)), "-o", out, *options)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return np.fromfile(out, dtype="<f4").astype(np.float64).reshape(len(tokens), -1)

    def convert(self, *options, name="out.gguf"):
        out = self.path(name)
        p = weft("convert", self.folder, out, *options)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return out

    def tokenize(self, model, text, *options):
        p = weft("tokenize", model, "-", *options, stdin=text.encode())
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return p.stdout


def tokens_for(case):
    return [int(i) for i in np.random.default_rng(len(case.name)).integers(0, hf.V, 24)]


class Logits(Folder):
    """One test per case, added below."""

    def check(self, case):
        weights = case.write(self.folder)
        tokens = tokens_for(case)
        expected = hf.forward(case.config, weights, tokens)
        got = self.logits(self.folder, tokens)
        self.assertLess(nmse(got, expected), 1e-8, "the folder itself")
        f32 = self.convert("--type", "f32")
        self.assertLess(nmse(self.logits(f32, tokens), expected), 1e-8, "converted to F32")
        if case.dtype != "F16":  # what fits BF16 need not fit F16
            stored = self.logits(self.convert(name="stored.gguf"), tokens)
            self.assertLess(nmse(stored, expected), 1e-8, "converted, types as stored")
        self.assertLess(nmse(self.logits(self.convert("--type", "bf16", name="bf16.gguf"), tokens), expected), 2e-3, "converted to BF16")
        self.assertLess(nmse(self.logits(self.convert("--type", "q8_0", name="q8.gguf"), tokens), expected), 2e-2, "converted to Q8_0")
        self.check_that_it_shows(case, weights, tokens, expected)
        if case.name == "phi3-long":
            short = hf.forward(case.config, weights, tokens, length=32)
            self.assertGreater(nmse(short, expected), 1e-4)
            for model in (self.folder, f32):
                self.assertLess(nmse(self.logits(model, tokens, "-c", "32"), short), 1e-8, "short factors")
        self.check_files(case, f32)

    def check_that_it_shows(self, case, weights, tokens, expected):
        """Without the window, or the scaling of rope, these tokens give other logits: so the comparisons above see both."""
        for field in ("sliding_window", "rope_scaling"):
            if case.config.get(field) and not (field == "sliding_window" and case.config["model_type"] == "qwen2"):
                self.assertGreater(nmse(hf.forward({**case.config, field: None}, weights, tokens), expected), 1e-4, field)

    def check_files(self, case, f32):
        for text in TEXTS:
            for options in ([], ["--no-bos", "--no-special"]):
                self.assertEqual(self.tokenize(self.folder, text, *options), self.tokenize(f32, text, *options), (text, options))
        folder, file = (json.loads(weft("info", "--json", m).stdout) for m in (self.folder, f32))
        self.assertEqual(folder["version"], 0)
        self.assertEqual(file["version"], 3)
        meta = file["metadata"]
        self.assertEqual(meta["general.architecture"], case.arch)
        self.assertEqual(meta["general.file_type"], 0)
        self.assertEqual(meta["tokenizer.chat_template"], "{{ bos_token }}new")
        self.assertEqual(len(meta["tokenizer.ggml.tokens"]), hf.V)
        self.assertEqual(len(meta["tokenizer.ggml.token_type"]), hf.V)
        self.assertEqual(meta["tokenizer.ggml.pre"], {"bpe": "llama-bpe", "qwen": "qwen2"}.get(case.tokenizer, "default"))
        spm = "spm" in case.tokenizer
        self.assertEqual(meta["tokenizer.ggml.model"], "llama" if spm else "gpt2")
        self.assertEqual("tokenizer.ggml.scores" in meta, spm)
        self.assertEqual("tokenizer.ggml.merges" in meta, not spm)
        self.assertEqual(meta["tokenizer.ggml.eot_token_id"], 310 if spm else 1 if case.tokenizer == "never" else meta["tokenizer.ggml.eot_token_id"])
        self.assertFalse([k for k in meta if k.startswith("weft.")])
        names = {t["name"]: t["shape"] for t in file["tensors"]}
        self.assertEqual(names, {t["name"]: t["shape"] for t in folder["tensors"]})
        self.assertEqual("output.weight" in names, not case.config["tie_word_embeddings"])


def add_case(case):
    def test(self):
        self.check(case)
    setattr(Logits, "test_" + case.name.replace("-", "_"), test)


for each in CASES[::common.repeated(1, 3, 3)]:
    add_case(each)


class Importance(Folder):
    """weft imatrix against the inputs of every matrix in the plain forward pass."""
    WORDS = "hello world the theater in her nation on another thing he ran and the world 1234 then "
    PLACES = [(r"self_attn\.(qkv|q|k|v)_proj", r"attn_\1"), (r"self_attn\.o_proj", "attn_output"), (r"block_sparse_moe\.gate|mlp\.gate", "ffn_gate_inp"),
              (r"mlp\.gate_up_proj", "ffn_up"), (r"mlp\.(gate|up|down)_proj", r"ffn_\1"), (r"mlp\.experts\.(\d+)\.(gate|up|down)_proj", r"ffn_\2_exps"),
              (r"block_sparse_moe\.experts\.(\d+)\.w1", "ffn_gate_exps"), (r"block_sparse_moe\.experts\.(\d+)\.w3", "ffn_up_exps"),
              (r"block_sparse_moe\.experts\.(\d+)\.w2", "ffn_down_exps")]

    def place(self, name):
        """("blk.1.ffn_up_exps.weight", expert) of a matrix of the folder."""
        layer, rest = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name).groups()
        for pattern, ours in self.PLACES:
            m = re.fullmatch(pattern, rest)
            if m:
                return f"blk.{layer}.{m.expand(ours)}.weight", int(m[1]) if "exps" in ours else 0
        raise KeyError(name)

    def check(self, case, chunk=16):
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        weights = case.write(self.folder)
        text, out = self.path("text"), self.path("matrix")
        with open(text, "w") as f:
            f.write(self.WORDS * 3)
        p = weft("imatrix", self.folder, "-f", text, "-o", out, "-c", str(chunk))
        self.assertEqual(p.returncode, 0, p.stderr)
        ids = [int(i) for i in self.tokenize(self.folder, self.WORDS * 3).split()]
        bos = [int(i) for i in self.tokenize(self.folder, "").split()]
        sums, counts = {}, {}

        def seen(name, rows):
            at = self.place(name)
            sums[at] = sums.get(at, 0) + (rows ** 2).sum(0)
            counts[at] = counts.get(at, 0) + len(rows)

        n_chunks = len(ids) // chunk
        self.assertGreater(n_chunks, 2)
        for i in range(n_chunks):
            hf.forward(case.config, weights, bos + ids[i * chunk + len(bos):(i + 1) * chunk], seen=seen)
        meta, tensors = gguf_file.read(out)
        self.assertEqual((meta["imatrix.chunk_count"], meta["imatrix.chunk_size"]), (n_chunks, chunk))
        for (name, expert), expected in sums.items():
            # Keys and values are rounded to f16 there, and a near tie may send a token to another expert.
            moved = abs(tensors[name + ".counts"][expert, 0] - counts[name, expert])
            self.assertLessEqual(moved, 2 if "exps" in name else 0, (case.name, name, expert))
            error = np.sqrt(nmse(tensors[name + ".in_sum2"][expert], expected))
            self.assertLess(error, 0.2 if moved else 0.01, (case.name, name, expert))
        self.assertEqual({n[:-len(".counts")] for n in tensors if n.endswith(".counts")}, {name for name, _ in sums})
        for name, a in tensors.items():  # what no token went to
            if name.endswith(".counts"):
                for expert in np.flatnonzero(a[:, 0] == 0):
                    self.assertNotIn((name[:-len(".counts")], expert), sums)

    def test_sums_of_squares(self):
        for name in ("qwen3moe", "phi3", "llama", "mixtral", "mixtral-window", "gemma2", "llama-tied")[:common.repeated(7, 3, 2)]:
            with self.subTest(name):
                self.check(NAMED[name])


class Features(Folder):
    def test_run_and_ends(self):
        NAMED["llama"].write(self.folder)
        p = weft("run", self.folder, "hello", "-n", "4", "--temp", "0", "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(json.loads(p.stdout)["prompt_tokens"], 2)  # BOS and one word

    def test_folder_without_tokenizer(self):
        NAMED["llama"].write(self.folder)
        os.unlink(os.path.join(self.folder, "tokenizer.json"))
        self.logits(self.folder, [1, 2])
        meta = json.loads(weft("info", "--json", self.convert()).stdout)["metadata"]
        self.assertFalse([k for k in meta if k.startswith("tokenizer.")])
        p = weft("tokenize", self.folder, "x")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"neither tokenizer.json nor tokenizer.model", p.stderr)

    def test_tokens_beyond_the_embedding_are_left_out(self):
        case = NAMED["gemma2"]
        case.write(self.folder)
        path = os.path.join(self.folder, "tokenizer.json")
        with open(path) as f:
            t = json.load(f)
        t["added_tokens"].append({"id": hf.V, "content": "<image>", "special": True})
        with open(path, "w") as f:
            json.dump(t, f)
        self.assertEqual(len(json.loads(weft("info", "--json", self.convert()).stdout)["metadata"]["tokenizer.ggml.tokens"]), hf.V)
        self.logits(self.folder, [1, 2])

    def check_tokens_that_swallow_whitespace(self, case):
        """They do so in a file as in the folder that it is made from, and in a file made of that."""
        text, ids = "hello </s>  world <s>  hello", []
        NAMED[case].write(self.folder)
        path = os.path.join(self.folder, "tokenizer.json")
        for strips in ({}, {"</s>": "rstrip", "<s>": "lstrip"}):
            with open(path) as f:
                t = json.load(f)
            for a in t["added_tokens"]:
                a.update({strips[a["content"]]: True} if a["content"] in strips else {})
            with open(path, "w") as f:
                json.dump(t, f)
            ids.append(self.tokenize(self.folder, text))
            gguf, again = self.convert("--type", "f32"), self.path("again.gguf")
            p = weft("quantize", gguf, again, "f16")
            self.assertEqual(p.returncode, 0, p.stderr.decode())
            for file in (gguf, again):
                self.assertEqual(self.tokenize(file, text), ids[-1], strips)
        self.assertNotEqual(*ids)

    def test_tokens_of_bytes_that_swallow_whitespace(self):
        self.check_tokens_that_swallow_whitespace("llama")

    def test_tokens_of_sentencepiece_that_swallow_whitespace(self):
        self.check_tokens_that_swallow_whitespace("llama-unaligned")

    def test_a_name_says_nothing_of_whitespace_where_the_folder_does(self):
        """Of a file without the key, one with Phi-3 in its name is taken to swallow it."""
        self.folder = self.path("Phi-3-of-my-own")
        os.mkdir(self.folder)
        self.check_tokens_that_swallow_whitespace("llama-unaligned")

    def edit(self, name, change):
        path = os.path.join(self.folder, name)
        with open(path) as f:
            content = json.load(f)
        change(content)
        with open(path, "w") as f:
            json.dump(content, f)

    def check_that_files_read_as_the_folder(self, texts):
        """A GGUF file made of it, one made of that, and a compiled plan. Returns what convert said, and the keys."""
        gguf, again, plan = self.path("out.gguf"), self.path("again.gguf"), self.path("out.plan")
        p = weft("convert", self.folder, gguf, "--type", "f32")
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        self.assertEqual(weft("quantize", gguf, again, "f16").returncode, 0)
        self.assertEqual(weft("compile", self.folder, plan).returncode, 0)
        for text in texts:
            for file in (gguf, again, plan):
                self.assertEqual(self.tokenize(file, text), self.tokenize(self.folder, text), (file, text))
        return p.stderr.decode(), json.loads(weft("info", "--json", again).stdout)["metadata"]

    def test_what_a_folder_says_files_say(self):
        """Where marks go, what is normalized, tokens of the files beside tokenizer.json, and more ends than GGUF has names for."""
        NAMED["llama-unaligned"].write(self.folder)
        last = len(hf.spm_pieces()[0])

        def tokenizer(t):
            t["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}
            t["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
            for i, content in enumerate(("[INST]", "[/INST]", "<TOOL>")):
                t["added_tokens"].append({"id": last + i, "content": content, "normalized": content == "<TOOL>", "special": True})

        def beside(c):
            c["added_tokens_decoder"] = {str(last + 3): {"content": "<beside>", "special": True}}
            c["chat_template"] = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]

        self.edit("tokenizer.json", tokenizer)
        self.edit("tokenizer_config.json", beside)
        os.unlink(os.path.join(self.folder, "chat_template.jinja"))
        self.edit("generation_config.json", lambda g: g.update(eos_token_id=[2, last, last + 1, last + 2, last + 3]))
        said, meta = self.check_that_files_read_as_the_folder(
            TEXTS + ["[INST] the[/INST]", "the[INST]the", "<TOOL>The<Tool> <beside>", "e\u0301 \u00e9"])
        self.assertEqual(self.tokenize(self.folder, "[INST]<tool><beside>", "--no-bos"), f"{last} {last + 2} {last + 3}\n".encode())
        self.assertIn("programs that do not know tokenizer.weft.*", said)
        self.assertEqual(meta["tokenizer.weft.ends"], [2, last, last + 1, last + 2, last + 3, 1])  # and that of config.json
        self.assertEqual((meta["tokenizer.chat_template"], meta["tokenizer.chat_template.tool_use"]), ("d", "t"))

    def test_what_tokenizer_model_leaves_to_files_beside_it(self):
        NAMED["llama-tied"].write(self.folder)
        last = len(hf.spm_pieces()[0])
        os.unlink(os.path.join(self.folder, "chat_template.jinja"))

        def beside(c):
            c["added_tokens_decoder"] = {str(last): {"content": "<word>", "special": False, "single_word": True, "rstrip": True}}
            c["chat_template"] = [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]

        self.edit("tokenizer_config.json", beside)
        with open(os.path.join(self.folder, "added_tokens.json"), "w") as f:
            json.dump({"<more>": last + 1, "</s>": 2}, f)
        self.edit("generation_config.json", lambda g: g.update(eos_token_id=[2, 5, 6, 7]))
        _, meta = self.check_that_files_read_as_the_folder(TEXTS + ["<word>  the a<word>", "<more>the<word>"])
        ids = self.tokenize(self.folder, "<word>  a<word> <more>", "--no-bos", "--no-special").split()
        self.assertEqual((ids[0], ids[-1], ids.count(ids[0])), (str(last).encode(), str(last + 1).encode(), 1))
        self.assertEqual((meta["tokenizer.chat_template"], meta["tokenizer.chat_template.rag"]), ("d", "r"))
        self.assertEqual(meta["tokenizer.weft.ends"], [2, 5, 6, 7, 1])

    def test_what_usual_keys_say_needs_no_others(self):
        for name in ("llama", "qwen2"):
            with self.subTest(name):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                NAMED[name].write(self.folder)
                said, meta = self.check_that_files_read_as_the_folder(TEXTS)
                self.assertEqual(said, "")
                self.assertEqual([k for k in meta if k.startswith("tokenizer.weft.")],
                                 ["tokenizer.weft.strips"] + (["tokenizer.weft.ends"] if "tokenizer.weft.ends" in meta else []))

    def test_unknown_pre_tokenizer(self):
        NAMED["qwen2"].write(self.folder)
        path = os.path.join(self.folder, "tokenizer.json")
        with open(path) as f:
            t = json.load(f)
        t["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"\p{L}+|\p{N}"
        with open(path, "w") as f:
            json.dump(t, f)
        self.assertEqual(self.tokenize(self.folder, "hello").split(), self.tokenize(self.folder, "hello").split())
        out = self.path("out.gguf")
        p = weft("convert", self.folder, out)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"--pre NAME", p.stderr)
        self.assertEqual(os.listdir(self.dir), ["model"])  # nothing is left behind
        self.assertEqual(weft("convert", self.folder, out, "--pre", "nonsense").returncode, 1)
        meta = json.loads(weft("info", "--json", self.convert("--pre", "gpt-2")).stdout)["metadata"]
        self.assertEqual(meta["tokenizer.ggml.pre"], "gpt-2")

    def test_rows_that_are_no_multiple_of_the_block_keep_their_type(self):
        NAMED["llama-tied"].write(self.folder)
        tensors = {t["name"]: t["type"] for t in json.loads(weft("info", "--json", self.convert("--type", "q4_k")).stdout)["tensors"]}
        self.assertEqual(tensors["blk.0.attn_q.weight"], "BF16")
        tensors = {t["name"]: t["type"] for t in json.loads(weft("info", "--json", self.convert("--type", "q4_0")).stdout)["tensors"]}
        self.assertEqual(tensors["blk.0.attn_q.weight"], "Q4_0")
        self.assertEqual(tensors["blk.0.attn_norm.weight"], "F32")

    def test_usage(self):
        NAMED["llama"].write(self.folder)
        self.assertEqual(weft("convert", self.folder).returncode, 2)
        self.assertEqual(weft("convert", self.folder, self.path("x"), "--type", "q9").returncode, 2)
        gguf = self.convert()
        p = weft("convert", gguf, self.path("x"))
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"is a GGUF file already", p.stderr)
        self.assertEqual(weft("convert", self.folder, "/nonexistent/x.gguf").returncode, 1)


def change(**fields):
    """Sets fields of config.json; None removes them."""
    def apply(folder):
        path = os.path.join(folder, "config.json")
        with open(path) as f:
            c = json.load(f)
        for key, value in fields.items():
            if value is None:
                c.pop(key, None)
            else:
                c[key] = value
        with open(path, "w") as f:
            json.dump(c, f)
    return apply


def replace(name, content):
    def apply(folder):
        if content is None:
            os.unlink(os.path.join(folder, name))
            return
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)
    return apply


def weights(edit):
    """Rewrites the weights of a Llama folder with its tensors edited."""
    def apply(folder):
        tensors = hf.random_weights(LLAMA.config, 1)
        edit(tensors)
        hf.write_weights(folder, tensors, "F32")
    return apply


LLAMA = Case("plain", "LlamaForCausalLM", {"model_type": "llama"})
QWEN2 = Case("plain", "Qwen2ForCausalLM", {"model_type": "qwen2"}, tokenizer="qwen")
MOE = NAMED["qwen3moe"]
GEMMA = NAMED["gemma2"]
PHI = NAMED["phi3-long"]
MIXTRAL = NAMED["mixtral"]
JSON_ERROR = "line 1"
# (case, what is done to its folder, words of the message)
REFUSED = [
    (LLAMA, replace("config.json", None), "no config.json"),
    (LLAMA, replace("config.json", b""), "empty"),
    (LLAMA, replace("config.json", b"{"), "config.json: line 1"),
    (LLAMA, replace("config.json", b"[1]"), "config.json: it is no object"),
    (LLAMA, replace("config.json", b"\xff\xfe"), "config.json: line 1"),
    (LLAMA, replace("config.json", b"[" * 100000), "config.json: "),
    (LLAMA, change(architectures=["MambaForCausalLM"]), "'MambaForCausalLM' is not supported; supported are: LlamaForCausalLM, MistralForCausalLM"),
    (LLAMA, change(architectures=["Llama\x1b[31m"]), "'Llama?[31m' is not supported"),
    (LLAMA, change(architectures=None, model_type="bloom"), "'bloom' is not supported"),
    (LLAMA, change(architectures=[3]), "is not supported; supported are"),
    (LLAMA, change(hidden_size=None), "hidden_size is missing"),
    (LLAMA, change(hidden_size="64"), "hidden_size is no whole number"),
    (LLAMA, change(hidden_size=0), "hidden_size is 0, not in 1.."),
    (LLAMA, change(hidden_size=-64), "hidden_size is -64, not in 1.."),
    (LLAMA, change(hidden_size=1 << 40), "hidden_size is 1099511627776"),
    (LLAMA, change(hidden_size=128), "tensor model.embed_tokens.weight is [320, 64]; config.json says [320, 128]"),
    (LLAMA, change(vocab_size=321), "tensor model.embed_tokens.weight is [320, 64]; config.json says [321, 64]"),
    (LLAMA, change(num_hidden_layers=3), "tensor model.layers.2.input_layernorm.weight is missing"),
    (LLAMA, change(num_hidden_layers=1), "tensor model.layers.1.input_layernorm.weight has no place"),
    (LLAMA, change(num_hidden_layers=1 << 30), "num_hidden_layers is 1073741824"),
    (LLAMA, change(num_attention_heads=3), "3 heads cannot share 2"),
    (LLAMA, change(num_attention_heads=0), "num_attention_heads is 0"),
    (LLAMA, change(head_dim=15), "15 rotated elements in a head of 15"),
    (LLAMA, change(head_dim=1 << 19), "4 heads of width 524288"),
    (LLAMA, change(rms_norm_eps="x"), "rms_norm_eps is no number"),
    (LLAMA, change(rope_theta=-1), "rope_theta is -1"),
    (LLAMA, change(rope_scaling=3), "rope_scaling is no object"),
    (LLAMA, change(rope_scaling={"factor": 2.0}), "rope scaling has no rope_type"),
    (LLAMA, change(rope_scaling={"type": "dynamic", "factor": 2.0}), "rope scaling 'dynamic' is not supported"),
    (LLAMA, change(rope_scaling={"type": "linear"}), "factor is missing"),
    (LLAMA, change(rope_scaling={"type": "linear", "factor": 0}), "factor is 0; it must be positive"),
    (LLAMA, change(rope_scaling={**LLAMA3_ROPE, "high_freq_factor": 0.5}), "high_freq_factor 0.5 is not above"),
    (LLAMA, change(rope_scaling=LONGROPE), "'longrope' is supported for Phi 3 only"),
    (LLAMA, change(rope_scaling={**YARN, "mscale": 1.0}), "mscale is not supported"),
    (QWEN2, change(rope_scaling=LLAMA3_ROPE), "'llama3' is supported for Llama only"),
    (PHI, change(rope_scaling={**LONGROPE, "long_factor": [1.0]}), "long_factor is no list of 6 numbers"),
    (PHI, change(rope_scaling={**LONGROPE, "short_factor": [1, 1, 1, 1, 1, 0]}), "entry 5 of short_factor is no positive number"),
    (LLAMA, change(partial_rotary_factor=0.5), "partial_rotary_factor of 0.5 is not supported"),
    (LLAMA, change(hidden_act="relu"), "activation 'relu' is not supported"),
    (LLAMA, change(tie_word_embeddings="yes"), "tie_word_embeddings is neither true nor false"),
    (LLAMA, change(quantization_config={"quant_method": "gptq"}), "quantization_config"),
    (LLAMA, change(layer_types=["full_attention"]), "layer_types is no list of 2 entries"),
    (LLAMA, change(layer_types=["full_attention", "linear_attention"]), "layer 1 is not full_attention"),
    (QWEN2, change(use_sliding_window=True), "use_sliding_window is not supported"),
    (QWEN2, replace("model.safetensors", None), "neither model.safetensors nor"),
    (MOE, change(norm_topk_prob=False), "norm_topk_prob false is not supported"),
    (MOE, change(mlp_only_layers=[0]), "mlp_only_layers is not supported"),
    (MOE, change(decoder_sparse_step=2), "decoder_sparse_step 2"),
    (MOE, change(num_experts=7), "mlp.gate.weight is [6, 64]; config.json says [7, 64]"),
    (MOE, change(num_experts_per_tok=9), "num_experts_per_tok is 9, not in 1..6"),
    (MIXTRAL, change(num_local_experts=3), "block_sparse_moe.gate.weight is [4, 64]; config.json says [3, 64]"),
    (GEMMA, change(query_pre_attn_scalar=8), "query_pre_attn_scalar is 8"),
    (GEMMA, change(attn_logit_softcapping=0), "Gemma 2 without soft-caps"),
    (GEMMA, change(layer_types=["full_attention", "sliding_attention"]), "layer 0 is not sliding_attention"),
    (NAMED["gemma3"], change(sliding_window_pattern=4), "sliding_window_pattern 4 is not supported"),
    (NAMED["gemma3"], change(rope_local_base_freq=20000.0), "rope_local_base_freq"),
    (NAMED["gemma3-eyes"], change(text_config=None), "text_config is missing"),
    (LLAMA, weights(lambda t: t.pop("lm_head.weight")), "tensor lm_head.weight is missing"),
    (LLAMA, weights(lambda t: t.update({"model.extra.weight": np.ones(3)})), "tensor model.extra.weight has no place"),
    (LLAMA, weights(lambda t: t.update({"model.norm.weight": np.ones((64, 1))})), "tensor model.norm.weight is [64, 1]; config.json says [64]"),
    (LLAMA, replace("model.safetensors", b"\x00"), "no safetensors file"),
    (LLAMA, replace("model.safetensors", struct.pack("<Q", 1 << 62) + b"{}"), "truncated"),
    (LLAMA, replace("model.safetensors", struct.pack("<Q", 2) + b"{}x"), "1 of the 1 bytes of tensor data belong to no tensor"),
    (LLAMA, replace("model.safetensors.index.json", b'{"weight_map": {"a": "../../etc/passwd"}}'), "is no plain file name"),
    (LLAMA, replace("tokenizer.json", b"{"), "tokenizer.json: line 1"),
    (LLAMA, replace("tokenizer.json", b"{}"), "tokenizer.json: there is no model"),
    (LLAMA, replace("tokenizer_config.json", b"nope"), "tokenizer_config.json: line 1"),
    (LLAMA, replace("generation_config.json", b"nope"), "generation_config.json: line 1"),
    (NAMED["llama-tied"], replace("tokenizer.model", b"\x0a\xff"), "tokenizer.model: "),
    (NAMED["llama-tied"], replace("tokenizer_config.json", b'{"added_tokens_decoder": {"x": {"content": "y"}}}'), "an entry has no id"),
    (NAMED["llama-tied"], replace("tokenizer_config.json", b'{"added_tokens_decoder": {"9999999": {"content": "y"}}}'), "far beyond the vocabulary"),
    (NAMED["llama-tied"], replace("added_tokens.json", b'{"<pad>": "x"}'), "added_tokens.json: an entry has no id"),
    (LLAMA, change(vocab_size=280), "config.json says [280, 64]"),
]


class Refused(Folder):
    def test_malformed_folders(self):
        self.assertGreaterEqual(len(REFUSED), 60)
        out = self.path("out.gguf")
        for i, (case, damage, words) in list(enumerate(REFUSED))[::common.repeated(1, 2, 5)]:
            with self.subTest(words, i=i):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                case.write(self.folder)
                damage(self.folder)
                for command in (["eval", "logits", self.folder, "--tokens", "1", "-o", out], ["convert", self.folder, out]):
                    p = weft(*command)
                    self.assertEqual(p.returncode, 1, p.stderr)
                    self.assertIn(words, p.stderr.decode())
                    self.assertIn(self.folder, p.stderr.decode())
                    self.assertEqual(p.stdout, b"")
                    self.assertEqual(os.listdir(self.dir), ["model"])


if __name__ == "__main__":
    common.main()
