# SPDX-License-Identifier: Apache-2.0
"""Random tokenizer.json files give the ids of Hugging Face's tokenizers, from the folder and from the GGUF file that `weft convert` makes of it.
usage: test_tokenizers.py build/weft

Needs python3-numpy and the package tokenizers, which comes with transformers (tests/peers/run installs it). Skipped where one is absent."""
import json
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model"))
import hf_cases as folders  # noqa: E402

try:
    import tokenizers
except ImportError:
    tokenizers = None

hf, MARK = folders.hf, "\u2581"
FILES, TEXTS = int(os.environ.get("WEFT_TOKENIZERS") or 60), 6
LETTERS = "abcdeABCDEtolx <>[]/INSTHi.,!?-12345é\u0301ﬁ²\u30c6\u3099\n\tßü\u0308f" + MARK
ADDED = ["<s>", "</s>", "[INST]", "[/INST]", "<TOOL>", "<tool>", "Tool", "<|x|>", "<|x|>y"]
TEXT = ["a", "b", "ab", " ", "  ", "Hi", "to", "tool", "\n", "\u00a0", "e\u0301", "É", "ﬁ", "\u30c6\u3099", "12", "!", MARK, "\u4e2d", "ü", "_"]


def normalizers(r):
    kinds = [lambda: {"type": r.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"])},
             lambda: {"type": "Strip", "strip_left": r.random() < 0.5, "strip_right": r.random() < 0.5},
             lambda: {"type": "Prepend", "prepend": r.choice([MARK, "a"])},
             lambda: {"type": "BertNormalizer", "clean_text": r.random() < 0.5, "handle_chinese_chars": r.random() < 0.5,
                      "strip_accents": r.choice([None, True, False]), "lowercase": r.random() < 0.5}]
    return [r.choice(kinds)() for _ in range(r.choice([0, 0, 1, 1, 2]))]


def pieces(r, kind):
    """Tokens, and merges that make some of them."""
    letters = [c for c in hf.alphabet().values()] if kind == "bytes" else list(dict.fromkeys(LETTERS))
    tokens = ["<unk>"] + ([] if kind == "bytes" else [f"<0x{b:02X}>" for b in range(256)]) + letters
    pool, merges = [c for c in letters if c not in "<>"], []
    for _ in range(80):
        pair = [r.choice(pool), r.choice(pool)]
        if len("".join(pair)) > 8 or pair in merges:
            continue
        merges.append(pair)
        if "".join(pair) not in tokens:
            tokens.append("".join(pair))
            pool.append("".join(pair))
    return tokens, merges


def added_tokens(r, first):
    return [{"id": first + i, "content": t, "single_word": r.random() < 0.2, "lstrip": r.random() < 0.25, "rstrip": r.random() < 0.25,
             "normalized": r.random() < 0.4, "special": r.random() < 0.5} for i, t in enumerate(r.sample(ADDED, r.randint(0, 6)))]


def random_file(r):
    kind = r.choice(["marks", "bytes", "unigram"])
    tokens, merges = pieces(r, kind)
    norms, pre = normalizers(r), None
    if kind == "bytes":
        pattern = {"type": "Split", "pattern": {"Regex": r.choice([hf.LLAMA3, hf.QWEN2])}, "behavior": "Isolated", "invert": False}
        level = {"type": "ByteLevel", "add_prefix_space": r.random() < 0.3, "trim_offsets": True, "use_regex": False}
        pre = {"type": "Sequence", "pretokenizers": [pattern, level]}
    elif r.random() < 0.5:
        norms.append({"type": "Replace", "pattern": {"String": " "}, "content": MARK})
    else:
        moved = any(n["type"] in ("Strip", "Prepend", "BertNormalizer") for n in norms)  # what is first then is the library's own matter
        scheme = r.choice(["always", "never"] if moved else ["first", "always", "never"])
        pre = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": r.random() < 0.5}
    model = {"type": "BPE", "dropout": None, "unk_token": None if kind == "bytes" else "<unk>", "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": r.random() < 0.5, "byte_fallback": kind != "bytes", "ignore_merges": r.random() < 0.3,
             "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}
    if kind == "unigram":
        model = {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": [[t, -r.randint(1, 300) / 10 if i else 0.0] for i, t in enumerate(tokens)]}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added_tokens(r, len(tokens)),
            "normalizer": {"type": "Sequence", "normalizers": norms}, "pre_tokenizer": pre, "post_processor": None, "decoder": None, "model": model}


@unittest.skipUnless(tokenizers, "the package tokenizers is not installed")
class Tokenizers(folders.Folder):
    def test_same_ids(self):
        case = folders.Case("tokens", "LlamaForCausalLM", {"model_type": "llama", "vocab_size": 800, "num_hidden_layers": 1})
        case.write(self.folder)
        for name in ("tokenizer_config.json", "generation_config.json"):
            os.unlink(os.path.join(self.folder, name))
        for i in range(FILES):
            r = random.Random(int(os.environ.get("WEFT_SEED") or 0) + i)
            file = random_file(r)
            with open(os.path.join(self.folder, "tokenizer.json"), "w") as f:
                json.dump(file, f)
            theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
            gguf = self.convert("--type", "f32", *(["--pre", "qwen2"] if file["model"]["vocab"] and "pretokenizers" in (file["pre_tokenizer"] or {}) else []))
            parts = TEXT + 3 * [a["content"] for a in file["added_tokens"]] + [a["content"].lower() for a in file["added_tokens"]]
            for text in ("".join(r.choice(parts) for _ in range(r.randint(1, 9))) for _ in range(TEXTS)):
                want = theirs.encode(text, add_special_tokens=False).ids
                for model in (self.folder, gguf):
                    self.assertEqual([int(t) for t in self.tokenize(model, text, "--no-bos").split()], want, (i, model, text))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["Tokenizers"]))
