# SPDX-License-Identifier: Apache-2.0
"""What the real server says of a model whose vocabulary is SentencePiece's: a trained one, with a template.

usage: test_spm.py build/weft     skipped (77) where there is no such model"""
import json
import os
import sys
import tempfile
import unittest

import real
from servers import CHAT, LLAMA, TEXT, user

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "material"))
from where import NO_MODELS, shared  # noqa: E402

MODEL = shared("models", "stories260K.gguf")
EOS, BYTES = 2, 3  # the token of a byte b is 3 + b
if not os.path.exists(MODEL):
    print("SKIP: " + NO_MODELS)
    sys.exit(77)


class SentencePiece(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.server = real.serve("--chat-template", real.write_template(folder), model=MODEL)

    @classmethod
    def tearDownClass(cls):
        real.checked_stop(cls.server)

    def ask(self, path, **body):
        answer = self.server.post(path, body)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_offsets_of_a_prompt_of_ids(self):
        """The text of [BOS, " Lily", ...] has no blank before Lily; what follows keeps its place all the same."""
        text = "Lily liked her ball."
        ids = self.ask("/tokenize", content=text, add_special=True)["tokens"]
        a = self.ask(TEXT, prompt=ids, echo=True, logprobs=0, max_tokens=1, temperature=0)["choices"][0]
        self.assertTrue(a["text"].startswith("<s>" + text), a["text"])
        at, wanted = 3 - 1, []  # behind <s>, and less the blank
        for piece in self.ask("/tokenize", content=text, with_pieces=True)["tokens"]:
            wanted.append(max(at, 3))
            at += len(piece["piece"])
        self.assertEqual(a["logprobs"]["text_offset"][:len(ids)], [0, *wanted])

    def test_special_tokens_in_messages_stay_text(self):
        def count(text):
            return self.ask(CHAT, messages=user(text), max_tokens=1)["usage"]["prompt_tokens"]
        spelled = [count("a " + text) for text in ("</s>", "<s>", "<unk>")]
        self.assertTrue(all(n >= count("a ") + 3 for n in spelled), spelled)

    def test_bytes_in_a_grammar(self):
        """Tokens of bytes, wanted above all others, as JSON lets them."""
        for bias, want in (("[]", []), ("{}", {}), ('"', ""), ("1", 111111111111111111)):
            wishes = [[EOS, 50], *([BYTES + ord(c), 100 * (1 + i)] for i, c in enumerate(bias))]
            a = self.ask(LLAMA, prompt="Once", n_predict=60, temperature=0, logit_bias=wishes, json_schema={})
            self.assertEqual((json.loads(a["content"]), a["stop_type"]), (want, "eos"), a)


if __name__ == "__main__":
    unittest.main(verbosity=1)
