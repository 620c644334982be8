"""Claims about the OpenAI endpoints, through the official client: every endpoint, whole and streamed, and its errors.

usage: test_openai.py PROGRAM [ARGUMENT]...    fake_server, or weft serve MODEL --port -1: whatever prints its address.
Skipped (77) where Python has no package `openai`."""
import math
import os
import re
import signal
import subprocess
import sys
import unittest

try:
    import openai
except ImportError:
    print("skipped: Python has no package openai")
    sys.exit(77)

COMMAND = sys.argv[1:]
del sys.argv[1:]
KEY = "sk-conformance-0123456789"


class Conformance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = [*os.environ.get("WEFT_EMULATOR", "").split(), os.path.abspath(COMMAND[0]), *COMMAND[1:], "--api-key", KEY]
        cls.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in cls.process.stdout:
            found = re.search(r"http://\S+:\d+", line)
            if found:
                break
        else:
            raise RuntimeError("the server gave no address")
        cls.client = openai.OpenAI(base_url=found.group() + "/v1", api_key=KEY, max_retries=0, timeout=120)
        cls.url = found.group()
        cls.model = cls.client.models.list().data[0].id

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.process.send_signal(signal.SIGTERM)
        cls.process.communicate(timeout=60)
        assert cls.process.returncode == 0

    def chat(self, **more):
        more = {"max_tokens": 12, "seed": 5, **more}
        return self.client.chat.completions.create(model=self.model, messages=[{"role": "user", "content": "Tell me a story"}], **more)

    def text(self, **more):
        more = {"max_tokens": 12, "seed": 5, **more}
        return self.client.completions.create(model=self.model, prompt=more.pop("prompt", "Once upon a time"), **more)

    def has_template(self):
        try:
            self.chat()
        except openai.BadRequestError as e:
            self.assertIn("chat template", e.message)
            self.skipTest("the model has no chat template")

    def test_models(self):
        self.assertEqual(self.client.models.retrieve(self.model).id, self.model)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("no-such-model")

    def test_chat(self):
        self.has_template()
        a = self.chat()
        self.assertEqual((a.object, a.choices[0].message.role), ("chat.completion", "assistant"))
        self.assertIn(a.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(a.usage.total_tokens, a.usage.prompt_tokens + a.usage.completion_tokens)
        self.assertEqual(self.chat().choices[0].message.content, a.choices[0].message.content)

    def test_chat_stream(self):
        self.has_template()
        whole = self.chat()
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), whole.choices[0].message.content)
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason], [whole.choices[0].finish_reason])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_chat_n_and_logprobs(self):
        self.has_template()
        a = self.chat(n=3, logprobs=True, top_logprobs=2)
        self.assertEqual([c.index for c in a.choices], [0, 1, 2])
        for c in a.choices:
            self.assertEqual(b"".join(bytes(t.bytes) for t in c.logprobs.content).decode(errors="replace").strip(), c.message.content.strip())
            for t in c.logprobs.content:
                self.assertLessEqual(t.logprob, 0)
                self.assertEqual(len(t.top_logprobs), 2)

    def test_completions(self):
        a = self.text()
        self.assertEqual(a.object, "text_completion")
        self.assertEqual(self.text().choices[0].text, a.choices[0].text)
        chunks = list(self.text(stream=True))
        self.assertEqual("".join(c.choices[0].text for c in chunks), a.choices[0].text)

    def test_completions_prompts_echo_logprobs(self):
        a = self.text(prompt=["One", "Two"], n=2, temperature=0)
        self.assertEqual([c.index for c in a.choices], [0, 1, 2, 3])
        self.assertEqual(a.choices[0].text, a.choices[1].text)
        a = self.text(prompt="One", echo=True, logprobs=1, max_tokens=4)
        p = a.choices[0].logprobs
        self.assertTrue(a.choices[0].text.startswith("One"))
        self.assertEqual(len({len(p.tokens), len(p.token_logprobs), len(p.top_logprobs), len(p.text_offset)}), 1)
        self.assertEqual(p.text_offset, sorted(p.text_offset))
        self.assertIsNone(p.token_logprobs[0])

    def test_stop(self):
        whole = self.text(temperature=0).choices[0].text
        middle = whole[len(whole) // 2:len(whole) // 2 + 2]
        a = self.text(temperature=0, stop=middle).choices[0]
        self.assertEqual((a.text, a.finish_reason), (whole[:whole.index(middle)], "stop"))

    def test_logit_bias(self):
        a = self.text(prompt="One", max_tokens=1, temperature=0, logprobs=0)
        self.assertEqual(len(a.choices[0].logprobs.tokens), 1)
        self.text(logit_bias={"10": -100, "11": 5})

    def test_embeddings(self):
        a = self.client.embeddings.create(model=self.model, input=["one", "two"])  # the client asks for base64
        b = self.client.embeddings.create(model=self.model, input=["one", "two"], encoding_format="float")
        self.assertEqual(len(a.data), 2)
        for x, y in zip(a.data, b.data):
            self.assertTrue(all(math.isclose(p, q, rel_tol=1e-6) for p, q in zip(x.embedding, y.embedding)))

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as e:
            self.text(temperature=9)
        self.assertEqual((e.exception.param, e.exception.type), ("temperature", "invalid_request_error"))
        with self.assertRaises(openai.BadRequestError):
            self.text(extra_body={"nonsense": 1})
        with self.assertRaises(openai.NotFoundError) as e:
            self.client.completions.create(model="no-such-model", prompt="x")
        self.assertEqual(e.exception.code, "model_not_found")
        with self.assertRaises(openai.AuthenticationError) as e:
            openai.OpenAI(base_url=self.url + "/v1", api_key="wrong-key", max_retries=0).completions.create(model=self.model, prompt="x")
        self.assertEqual(e.exception.code, "invalid_api_key")

    def test_leaving_a_stream(self):
        for _ in range(3):
            stream = self.text(max_tokens=200, stream=True)
            next(iter(stream))
            stream.close()
        self.text()


if __name__ == "__main__":
    unittest.main(verbosity=1)
