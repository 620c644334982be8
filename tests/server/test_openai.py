# SPDX-License-Identifier: Apache-2.0
"""Claims about the OpenAI endpoints, through the official client: every endpoint, whole and streamed, and its errors.

usage: test_openai.py build/fake_server | build/weft     the latter serves a small model with a chat template
Skipped (77) where Python has no package `openai`; `make clients` makes an environment that has it, which is used here then."""
import asyncio
import json
import math
import os
import sys
import typing
import unittest

CLIENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build", "clients", "bin", "python")
try:
    import openai
except ImportError:
    if os.path.exists(CLIENTS) and not os.environ.get("WEFT_CLIENTS"):
        os.environ["WEFT_CLIENTS"] = "1"
        os.execv(CLIENTS, [CLIENTS, *sys.argv])
    print("skipped:", os.environ.get("WEFT_NO_CLIENTS") or "Python has no package openai; `make clients` installs it into build/clients")
    sys.exit(77)

import pydantic  # openai has it

from servers import FAKE, PATIENCE, PROGRAM, Server

REAL = os.path.basename(PROGRAM) == "weft"
if REAL:
    import real
KEY = "sk-conformance-0123456789"


class Conformance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = real.serve("--api-key", KEY) if REAL else Server([*FAKE, "--api-key", KEY])
        cls.url = cls.server.address
        cls.options = {"base_url": cls.url + "/v1", "max_retries": 0, "timeout": PATIENCE}
        cls.client = openai.OpenAI(api_key=KEY, **cls.options)
        cls.model = cls.client.models.list().data[0].id

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        status, err = cls.server.stop()
        assert status == 0, err

    def chat(self, **more):
        more = {"max_tokens": 12, "seed": 5, **more}
        return self.client.chat.completions.create(model=self.model, messages=[{"role": "user", "content": "Tell me a story"}], **more)

    def text(self, **more):
        more = {"max_tokens": 12, "seed": 5, **more}
        return self.client.completions.create(model=self.model, prompt=more.pop("prompt", "Once upon a time"), **more)

    def test_models(self):
        self.assertEqual(self.client.models.retrieve(self.model).id, self.model)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("no-such-model")

    def test_chat(self):
        a = self.chat()
        self.assertEqual((a.object, a.choices[0].message.role), ("chat.completion", "assistant"))
        self.assertIn(a.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(a.usage.total_tokens, a.usage.prompt_tokens + a.usage.completion_tokens)
        self.assertEqual(self.chat().choices[0].message.content, a.choices[0].message.content)

    def test_chat_stream(self):
        whole = self.chat()
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), whole.choices[0].message.content)
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason], [whole.choices[0].finish_reason])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_chat_n_and_logprobs(self):
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
        def first(**more):
            return self.text(prompt="One", max_tokens=1, temperature=0, logprobs=1, **more).choices[0].logprobs
        best = first()
        self.assertEqual(len(best.tokens), 1)
        if not REAL:  # a script heeds no biases
            first(logit_bias={"10": -100, "11": 5})
            return
        tokens = {i: first(logit_bias={str(i): 100}).tokens[0] for i in (300, 301, 302)}
        self.assertEqual(len(set(tokens.values())), 3)
        banned = next(i for i in range(3, real.N_VOCAB) if first(logit_bias={str(i): -100}).tokens != best.tokens)
        self.assertEqual(first(logit_bias={str(banned): 100}).tokens, best.tokens)
        forced = first(logit_bias={"300": 100})
        self.assertEqual(
            list(forced.top_logprobs[0].items()),
            [(best.tokens[0], best.token_logprobs[0]), (forced.tokens[0], forced.token_logprobs[0])],
        )  # the model's own

    def test_seed_and_temperature(self):
        texts = [self.text(seed=s, temperature=1.2, max_tokens=30).choices[0].text for s in (1, 2, 1)]
        self.assertEqual(texts[0], texts[2])
        if REAL:
            self.assertNotEqual(texts[0], texts[1])

    def test_streams_of_several(self):
        whole = self.chat(n=3, temperature=1)
        got = {0: "", 1: "", 2: ""}
        for c in self.chat(n=3, temperature=1, stream=True):
            got[c.choices[0].index] += c.choices[0].delta.content or ""
        self.assertEqual(got, {c.index: c.message.content for c in whole.choices})
        whole = self.text(prompt=["One", "Two"], n=2)
        got = {}
        for c in self.text(prompt=["One", "Two"], n=2, stream=True, stream_options={"include_usage": True}):
            for choice in c.choices:
                got[choice.index] = got.get(choice.index, "") + choice.text
        self.assertEqual(got, {c.index: c.text for c in whole.choices})

    def test_stream_with_logprobs(self):
        whole = self.chat(logprobs=True, top_logprobs=3).choices[0].logprobs.content
        streamed = [t for c in self.chat(logprobs=True, top_logprobs=3, stream=True)
                    if c.choices and c.choices[0].logprobs for t in c.choices[0].logprobs.content]
        self.assertEqual([(t.token, t.logprob, len(t.top_logprobs)) for t in streamed], [(t.token, t.logprob, len(t.top_logprobs)) for t in whole])

    def test_stop_in_a_stream(self):
        text = self.chat(temperature=0, max_tokens=30).choices[0].message.content
        stop = [text[len(text) // 3:len(text) // 3 + 3], text[len(text) // 2:len(text) // 2 + 2]]
        want = text[:min(text.index(s) for s in stop)]
        chunks = list(self.chat(temperature=0, max_tokens=30, stop=stop, stream=True))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks), want)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")

    def test_sampling_fields(self):
        self.chat(temperature=0.5, top_p=0.8, presence_penalty=0.5, frequency_penalty=-0.5, user="me", stop=None, max_completion_tokens=5, max_tokens=None)
        self.text(temperature=2, top_p=0.1, presence_penalty=-2, frequency_penalty=2, user="me", best_of=1, suffix=None)

    def test_penalties(self):
        """They change what is said, and as much as /completion's over all of the text."""
        if not REAL:  # a script heeds none
            return
        n = 250  # as many as it takes until two words are that close
        plain = self.text(temperature=0, max_tokens=n).choices[0].text
        for name, llama, value in (("presence_penalty", None, 2), ("frequency_penalty", None, 2), ("repetition_penalty", "repeat_penalty", 2)):
            penalty = {"extra_body": {name: value}}
            said = self.text(temperature=0, max_tokens=n, **penalty).choices[0].text
            self.assertNotEqual(said, plain, name)
            body = {"prompt": "Once upon a time", "temperature": 0, "n_predict": n, "repeat_last_n": -1, llama or name: value}
            self.assertEqual(self.server.post("/completion", body, headers={"X-Api-Key": KEY}).json["content"], said, name)
            chat = [self.chat(temperature=0, max_tokens=n, **more).choices[0].message.content for more in ({}, penalty)]
            self.assertNotEqual(*chat, name)

    def token(self, c):
        [token] = self.server.post("/tokenize", {"content": c}, headers={"X-Api-Key": KEY}).json["tokens"]
        return token

    def test_json_object(self):
        braces = {str(self.token(c)): 100 for c in "{}"} if REAL else {}
        a = self.chat(response_format={"type": "json_object"}, max_tokens=60, logit_bias=braces).choices[0]
        if REAL:
            self.assertEqual((json.loads(a.message.content), a.finish_reason), ({}, "stop"))

    def test_parse(self):
        """The client's own schema of a class, and what it reads from the answer."""
        if not REAL:
            return
        class Pet(pydantic.BaseModel):
            name: typing.Literal["Rex", "Kit"]
            age: typing.Literal[1, 2, 3]
            owners: list[typing.Literal["Mira", "Tom"]] = pydantic.Field(min_length=1, max_length=2)
            is_small: bool
            collar: typing.Optional[typing.Literal["red", "blue"]]

        a = self.client.chat.completions.parse(model=self.model, messages=[{"role": "user", "content": "A pet"}], response_format=Pet, max_tokens=200)
        self.assertEqual((type(a.choices[0].message.parsed), a.choices[0].finish_reason), (Pet, "stop"))

    def test_tagged_union(self):
        """Of classes with a tag that has a default, which the schema does not require; the class that reads it back does."""
        if not REAL:
            return
        class Cat(pydantic.BaseModel):
            kind: typing.Literal["cat"] = "cat"
            lives: typing.Literal[1, 9] = 9

        class Dog(pydantic.BaseModel):
            kind: typing.Literal["dog"] = "dog"
            model_config = pydantic.ConfigDict(extra="forbid")

        pets = pydantic.TypeAdapter(list[typing.Annotated[typing.Union[Cat, Dog], pydantic.Field(discriminator="kind")]])
        schema = {"type": "json_schema", "json_schema": {"name": "pets", "schema": {**pets.json_schema(), "minItems": 1, "maxItems": 2}}}
        for seed in range(4):
            a = self.chat(response_format=schema, max_tokens=200, seed=seed, temperature=1).choices[0]
            if a.finish_reason == "stop":
                self.assertIn(len(pets.validate_json(a.message.content)), (1, 2))

    def test_parse_beside_tools(self):
        """Answers that may call are of the class, or calls whose arguments are; whole and streamed."""
        if not REAL:
            return
        class Answer(pydantic.BaseModel):
            n: typing.Annotated[int, pydantic.Field(ge=0, le=9)]
            mark: typing.Annotated[str, pydantic.Field(pattern="^<[a-z]{1,4}>$")]

        class Look(pydantic.BaseModel):
            """Looks."""
            town: typing.Literal["Bern", "Rome"]

        kinds = set()
        for seed, choice in ((seed, choice) for seed in range(3) for choice in ("auto", "none", "required")):
            more = {"model": self.model, "messages": [{"role": "user", "content": "Hello"}], "tools": [openai.pydantic_function_tool(Look)],
                    "tool_choice": choice, "response_format": Answer, "seed": seed, "temperature": 1.2, "max_tokens": 120}
            with self.client.chat.completions.stream(**more) as stream:
                for _ in stream:
                    pass
            for a in (self.client.chat.completions.parse(**more), stream.get_final_completion()):
                m, reason = a.choices[0].message, a.choices[0].finish_reason
                called = [c.function.parsed_arguments for c in m.tool_calls or []]
                self.assertEqual((m.parsed is None, bool(called), {type(c) for c in called} <= {Look}), (reason == "tool_calls",) * 2 + (True,))
                self.assertIn(choice, ("auto", "required" if called else "none"))
                kinds.add(bool(called))
        self.assertEqual(kinds, {True, False})

    def test_tool_loop(self):
        """The client's calls, whole and streamed, by tools and by functions; with what they return, the model answers."""
        add = {"name": "add", "description": "the sum of two numbers",
               "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}
        question = "Add 4 and 5." if REAL else '[say {"name": "add", "arguments": {"a": 4, "b": 5}}]'
        messages = [{"role": "user", "content": question}]
        more = {"model": self.model, "messages": messages, "temperature": 0, "max_tokens": 80}
        tools = [{"type": "function", "function": add}]
        a = self.client.chat.completions.create(tools=tools, **more).choices[0]
        [call] = a.message.tool_calls
        self.assertEqual((a.finish_reason, a.message.content, call.type, call.function.name), ("tool_calls", None, "function", "add"))
        self.assertEqual(json.loads(call.function.arguments), {"a": 4, "b": 5})
        with self.client.chat.completions.stream(tools=tools, **more) as stream:
            for _ in stream:
                pass
            streamed = stream.get_final_completion().choices[0]
        self.assertEqual((streamed.finish_reason, len(streamed.message.tool_calls)), ("tool_calls", 1))
        self.assertEqual(streamed.message.tool_calls[0].function.arguments, call.function.arguments)
        old = self.client.chat.completions.create(functions=[add], **more).choices[0]
        self.assertEqual((old.finish_reason, old.message.function_call.arguments), ("function_call", call.function.arguments))
        messages += [a.message, {"role": "tool", "tool_call_id": call.id, "content": json.dumps({"sum": 9})}]
        a = self.client.chat.completions.create(tools=tools, **more).choices[0]
        if REAL:
            self.assertEqual((a.finish_reason, a.message.tool_calls), ("stop", None))
            self.assertIn("9", a.message.content)

    def test_json_schema(self):
        """llama.cpp's {} is any JSON value, and never no constraint at all."""
        if not REAL:
            return
        def ask(path, bias, **more):
            body = {
                "prompt": "Once",
                "n_predict": 60,
                "logit_bias": [[real.EOS, 50], *([self.token(c), 100 * (1 + i)] for i, c in enumerate(bias))],
                "temperature": 0,
                **more,
            }
            return self.server.post(path, body, headers={"X-Api-Key": KEY}).json
        for bias, want in (("[]", []), ("{}", {}), ('"', ""), ("1", 111111111111111111)):
            a = ask("/completion", bias, json_schema={})
            self.assertEqual((json.loads(a["content"]), a["stop_type"]), (want, "eos"), a)
        self.assertEqual(ask("/completion", "1", json_schema=None, n_predict=4)["content"], "1111")
        for schema, want in (({"type": "array", "maxItems": 0}, []), ({"const": "yes"}, "yes")):
            a = self.chat(extra_body={"json_schema": schema}, max_tokens=40)
            self.assertEqual(json.loads(a.choices[0].message.content), want)

    def test_many_at_once(self):
        async def ask():
            async with openai.AsyncOpenAI(api_key=KEY, **self.options) as client:
                async def one():
                    stream = await client.completions.create(model=self.model, prompt="Once upon a time", max_tokens=12, seed=5, stream=True)
                    return "".join([c.choices[0].text async for c in stream])
                return await asyncio.gather(*(one() for _ in range(16)))
        self.assertEqual(set(asyncio.run(ask())), {self.text().choices[0].text})

    def test_embeddings(self):
        a = self.client.embeddings.create(model=self.model, input=["one", "three"])  # the client asks for base64
        b = self.client.embeddings.create(model=self.model, input=["one", "three"], encoding_format="float")
        self.assertEqual([d.index for d in a.data], [0, 1])
        self.assertEqual(a.usage.total_tokens, a.usage.prompt_tokens)
        self.assertNotEqual(a.data[0].embedding, a.data[1].embedding)
        if REAL:
            self.assertAlmostEqual(sum(v * v for v in a.data[0].embedding), 1, places=4)
        for x, y in zip(a.data, b.data):
            self.assertTrue(all(math.isclose(p, q, rel_tol=1e-6) for p, q in zip(x.embedding, y.embedding)))
        many = self.client.embeddings.create(model=self.model, input=["one", "three"] * 500)  # as many as frameworks send at once
        self.assertEqual([d.embedding for d in many.data], [d.embedding for d in a.data] * 500)

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as e:
            self.text(temperature=9)
        self.assertEqual((e.exception.param, e.exception.type), ("temperature", "invalid_request_error"))
        with self.assertRaises(openai.BadRequestError):
            self.text(extra_body={"nonsense": 1})
        with self.assertRaises(openai.BadRequestError) as e:
            self.text(prompt="story " * 20000)
        self.assertEqual(e.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError) as e:
            self.client.embeddings.create(model=self.model, input="x", dimensions=3)
        self.assertEqual(e.exception.param, "dimensions")
        with self.assertRaises(openai.NotFoundError) as e:
            self.client.completions.create(model="no-such-model", prompt="x")
        self.assertEqual(e.exception.code, "model_not_found")
        with self.assertRaises(openai.AuthenticationError) as e:
            openai.OpenAI(api_key="wrong-key", **self.options).completions.create(model=self.model, prompt="x")
        self.assertEqual(e.exception.code, "invalid_api_key")

    def test_leaving_a_stream(self):
        for _ in range(3):
            stream = self.text(max_tokens=200, stream=True)
            next(iter(stream))
            stream.close()
        self.text()


if __name__ == "__main__":
    unittest.main(verbosity=1)
