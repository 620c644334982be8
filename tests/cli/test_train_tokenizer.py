# SPDX-License-Identifier: Apache-2.0
"""Claims about weft train-tokenizer. usage: test_train_tokenizer.py build/weft"""
import json
import os
import pathlib
import tempfile
import unittest

from common import main, weft

TEXT = ("The fox sat by the mill. \"Who is there?\" asked the fox. It was the owl.<|endoftext|>\n"
        "The owl and the fox sat by the mill, and the mill went round.<|endoftext|>\n{\"name\": \"fox\", \"n\": 12}\n") * 3
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


class TrainTokenizer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.text, self.template = self.write("text.txt", TEXT), self.write("chat.jinja", TEMPLATE)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        pathlib.Path(self.path(name)).write_text(text, encoding="utf-8")
        return self.path(name)

    def train(self, name, *args):
        p = weft("train-tokenizer", self.text, "-o", self.path(name), "--vocab", "330", *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return self.path(name)

    def tokens(self, vocabulary, text, *args):
        p = weft("tokenize", vocabulary, "-", "--json", *args, stdin=text.encode())
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def test_words_of_the_text_are_tokens_and_every_text_is_spelled(self):
        vocab = self.train("v.gguf", "--word", "<tool_call>", "--special", "<|note|>", "--chat-template", self.template)
        self.assertEqual(
            self.tokens(vocab, "The fox sat by the mill")["pieces"],
            ["<|startoftext|>", "The", "\u0120fox", "\u0120sat", "\u0120by", "\u0120the", "\u0120mill"],
        )
        special = "<|startoftext|><|endoftext|><|pad|><|im_start|><|im_end|><|note|><tool_call>"
        self.assertEqual(self.tokens(vocab, special, "--no-bos")["tokens"], list(range(7)))
        self.assertEqual(self.tokens(vocab, "<tool_call>", "--no-bos", "--no-special")["tokens"], [6])  # a word is one in any text
        self.assertGreater(len(self.tokens(vocab, "<|im_end|>", "--no-bos", "--no-special")["tokens"]), 4)
        odd = self.tokens(vocab, "\u4e2d\u6587 \u00fc\t\r\n \U0001f98a", "--no-bos")
        self.assertTrue(all(7 <= t < 330 for t in odd["tokens"]))
        info = json.loads(weft("info", vocab, "--json").stdout)
        self.assertEqual(info["metadata"]["tokenizer.chat_template"], TEMPLATE)
        self.assertEqual(info["metadata"]["tokenizer.ggml.eot_token_id"], 4)

    def test_the_same_texts_give_the_same_file(self):
        one, two = (pathlib.Path(self.train(n)).read_bytes() for n in ("1.gguf", "2.gguf"))
        self.assertEqual(one, two)

    def test_a_byte_order_mark_is_no_text(self):
        plain = pathlib.Path(self.train("plain.gguf")).read_bytes()
        self.write("text.txt", "\ufeff" + TEXT)
        self.assertEqual(pathlib.Path(self.train("marked.gguf")).read_bytes(), plain)

    def test_a_text_with_few_pairs_gives_fewer_tokens_and_says_so(self):
        p = weft("train-tokenizer", self.write("few.txt", "abab"), "-o", self.path("few.gguf"), "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(json.loads(p.stdout), {"tokens": 262, "merges": 1, "bytes": 4})
        self.assertIn(b"no more pairs: 262 tokens of 2048", p.stderr)

    def test_what_is_read_is_not_written_over(self):
        other = self.path("other.txt")
        os.link(self.text, other)  # the same file by another name
        for out, args in ((self.text, ()), (other, ()), (self.template, ("--chat-template", self.template))):
            p = weft("train-tokenizer", self.text, "-o", out, "--vocab", "330", *args)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn(out.encode() + b" is what is read", p.stderr)
        self.assertEqual([pathlib.Path(f).read_text(encoding="utf-8") for f in (self.text, self.template)], [TEXT, TEMPLATE])

    def test_what_is_wrong_is_named(self):
        out = self.path("out.gguf")
        for args, status, words in ((("nowhere.txt", "-o", out), 1, b"nowhere.txt"), ((self.text,), 2, b"-o is missing"),
                                    ((self.text, "-o", out, "--pre", "nonsense"), 1, b"nonsense"),
                                    ((self.text, "-o", out, "--vocab", "100"), 2, b"from 262"),
                                    ((self.text, "-o", out, "--vocab", "262", "--special", "<a>"), 1, b"263"),
                                    ((self.text, "-o", out, "--word", "<a>", "--word", "<a>"), 1, b"'<a>' is named twice"),
                                    ((self.text, "-o", out, "--chat-template", self.write("bad", "{% if %}")), 1, b"chat template"),
                                    ((self.train("v.gguf"), "-o", out), 1, b"v.gguf: it is a GGUF file, not text"),
                                    ((self.write("one", "a"), "-o", out), 1, b"nothing to learn from")):
            p = weft("train-tokenizer", *args)
            self.assertEqual(p.returncode, status, (args, p.stderr))
            self.assertIn(words, p.stderr)
            self.assertFalse(os.path.exists(out))


if __name__ == "__main__":
    main()
