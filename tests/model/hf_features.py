# SPDX-License-Identifier: Apache-2.0
"""What folders have besides their weights: tokenizers, templates, parts, types; and what `weft convert` keeps of them."""
import json
import os
import shutil

from hf_cases import NAMED, TEXTS, Folder, weft
import hf_folder as hf


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
