# SPDX-License-Identifier: Apache-2.0
"""Null is absence in both dialects; and a context that is full goes on where the request says so."""
import json
import subprocess

from servers import CHAT, FAKE, LLAMA, TEXT, Case, user


BODIES = {
    "chat": {"messages": user("x")},
    "completions": {"prompt": "x"},
    "embeddings": {"input": "x"},
    "completion": {"prompt": "x", "n_predict": 1},
    "tokenize": {"content": "x"},
    "detokenize": {"tokens": [97]},
    "apply_template": {"messages": user("x")},
    "embedding": {"content": "x"},
}


class Null(Case):
    """Null is absence, whatever the dialect, at every depth where there are fields."""

    def test_optional_fields(self):
        """Each of them null, one by one and all at once, gives the answer that none of them gives."""
        def told(a):
            return a if isinstance(a, list) else {k: v for k, v in a.items() if k not in ("id", "created", "timings", "generation_settings", "id_slot")}
        tables = json.loads(subprocess.run([*FAKE, "--fields"], capture_output=True, text=True, check=True).stdout)
        for name, body in BODIES.items():
            plain = told(self.post(tables[name]["path"], body).json)
            optional = {f: None for f in tables[name]["fields"] if f not in body}
            self.assertTrue(optional or name == "detokenize", name)
            for more in (optional, *({f: None} for f in optional)):
                self.assertEqual(told(self.post(tables[name]["path"], {**body, **more}).json), plain, (name, more))

    def test_fields_of_fields(self):
        chat = {"messages": user("[say a]")}
        for options, usage in (
            ({"include_usage": None}, False),
            ({"include_usage": None, "include_obfuscation": None}, False),
            ({"include_usage": True, "include_obfuscation": None}, True),
        ):
            e = self.post(CHAT, {**chat, "stream": True, "stream_options": options}).events
            self.assertEqual("usage" in e[-2], usage, options)
        self.post(CHAT, {**chat, "response_format": {"type": "text", "json_schema": None}})
        self.post(CHAT, {**chat, "logit_bias": {"5": None, "6": 1}})
        self.post(LLAMA, {"prompt": "x", "n_predict": 1, "logit_bias": {"5": None, "a": None}})

    def test_what_is_not_known(self):
        """Where an unknown field is refused, null in it is none: newer clients send all of theirs."""
        chat, stream = {"messages": user("[say a]")}, {"stream": True, "stream_options": {"brand_new": None}}
        for path, body in ((CHAT, chat), (TEXT, {"prompt": "[say a]"}), ("/v1/embeddings", {"input": "x"}), (CHAT, {**chat, **stream})):
            self.post(path, {**body, "moderation": None})
            self.assertIn("supplied: moderation", self.post(path, {**body, "moderation": 0}, 400).json["error"]["message"])
        self.post(CHAT, {**chat, "stream": True, "stream_options": {"brand_new": 0}}, 400)

    def test_what_calls_return(self):
        """Nothing, as null; but there it is. Parts that refuse are text."""
        for role in ("tool", "function"):
            m = [*user("hi"), {"role": role, "content": None, "tool_call_id": "c", "name": "f"}]
            empty = self.server.post("/apply-template", {"messages": [m[0], {**m[1], "content": ""}]})
            null = self.server.post("/apply-template", {"messages": m})
            self.assertEqual((null.status, null.json), (empty.status, empty.json))
            if role == "function":  # this model's template knows none
                self.assertIn("no role 'function'", null.json["error"]["message"])
            else:
                self.post(CHAT, {"messages": m, "max_tokens": 1})
            self.assertIn("is missing", self.post(CHAT, {"messages": [m[0], {"role": role}]}, 400).json["error"]["message"])
        parts = [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "No."}]
        prompt = self.post("/apply-template", {"messages": [*user("hi"), {"role": "assistant", "content": parts}, *user("more")]}).json["prompt"]
        self.assertEqual(prompt, "<|user|>hi<|assistant|>a\nNo.<|user|>more<|assistant|>")
        for bad in ({"type": "refusal"}, {"type": "refusal", "refusal": 5}, {"type": "refusal", "text": "a"}):
            e = self.post(CHAT, {"messages": [*user("hi"), {"role": "assistant", "content": [bad]}]}, 400).json["error"]
            self.assertEqual(e["param"], "messages[1].content[0]")

    def test_members_of_messages(self):
        """As clients hand back what they were answered, with all of its fields."""
        nulls = {"name": None, "refusal": None, "audio": None, "annotations": None, "function_call": None, "reasoning_content": None, "tool_call_id": None}
        for content in ("Good day.", None, "", []):
            for calls in ({}, {"tool_calls": None}, {"tool_calls": []}):
                answer = {"role": "assistant", "content": content, **nulls, **calls}
                messages = [{**user("hi")[0], **nulls}, answer, *user("more")]
                prompt = self.post("/apply-template", {"messages": messages}).json["prompt"]
                self.assertEqual(prompt, "<|user|>hi<|assistant|>%s<|user|>more<|assistant|>" % (content or ""), answer)
                self.post(CHAT, {"messages": messages, "max_tokens": 1})

    def test_arguments_of_calls(self):
        """Text or object; and what is neither is refused by its place, before anything is rendered."""
        def asked(arguments):
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
            return {
                "messages": [
                    *user("x"),
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "content": "y", "tool_call_id": "c"},
                ],
                "max_tokens": 1,
            }
        for good in ('{"a": 1}', {"a": 1}, "{}", {}, "", None):
            self.post(CHAT, asked(good))
        for bad in ("a: 1", '{"a": ', "{'a': 1}", "[1]", "5", '"a"', [1], 5, True, '{"a":' + "[" * 300 + "]" * 300 + "}"):
            e = self.post(CHAT, asked(bad), 400).json["error"]
            self.assertEqual(e["param"], "messages[1].tool_calls[0].function.arguments", bad)
            self.assertIn("must be a JSON object, or one as text", e["message"])
        for bad, place in (({}, "tool_calls"), ([5], "tool_calls[0]"), ([{"function": 5}], "tool_calls[0].function")):
            e = self.post(CHAT, {"messages": [*user("x"), {"role": "assistant", "tool_calls": bad}]}, 400).json["error"]
            self.assertEqual(e["param"], "messages[1]." + place)


class Overflow(Case):
    def test_a_context_that_is_full_goes_on(self):
        """What is asked for beyond the context stops there, or goes on and says what was left out: the double counts what is beyond its
        2048 tokens, and n_keep of them."""
        def ask(path, **more):
            return self.post(path, {"prompt": "[loop ab]", **more}).json
        a = ask(LLAMA, n_predict=3000)
        self.assertEqual((a["tokens_predicted"], a["truncated"], a["dropped_tokens"], a["stop_type"]), (2038, False, 0, "limit"))
        a = ask(LLAMA, n_predict=3000, overflow="stop", n_keep=5)
        self.assertEqual((a["tokens_predicted"], a["truncated"], a["generation_settings"]["n_keep"]), (2038, False, 5))
        a = ask(LLAMA, n_predict=3000, overflow="shift")
        self.assertEqual((a["tokens_predicted"], a["truncated"], a["dropped_tokens"], a["stop_type"]), (3000, True, 962, "limit"))
        self.assertEqual(a["content"], "ab" * 1500)
        self.assertEqual(self.server.metric("llamacpp:n_tokens_max"), 2048)  # that were held at a time
        self.assertEqual(ask(LLAMA, n_predict=3000, overflow="shift", n_keep=100)["dropped_tokens"], 1062)
        self.assertEqual(ask(LLAMA, n_predict=3000, overflow="shift", n_keep=-1)["dropped_tokens"], 972)  # the prompt
        a = ask(LLAMA, n_predict=30, overflow="shift")
        self.assertEqual((a["tokens_predicted"], a["truncated"], a["dropped_tokens"]), (30, False, 0))
        self.assertEqual(ask(LLAMA, overflow="shift")["tokens_predicted"], 2048)  # without a limit: a context full
        for path, key in ((TEXT, "text"), (CHAT, "message")):
            body = {"overflow": "shift", "max_tokens": 3000}
            body.update({"prompt": "[loop ab]"} if path == TEXT else {"messages": user("[loop ab]")})
            c = self.post(path, body).json["choices"][0]
            self.assertEqual((c["finish_reason"], c["dropped_tokens"] > 900, key in c), ("length", True, True))
            events = [e for e in self.post(path, {**body, "stream": True}).events if e != "[DONE]"]
            self.assertEqual([e["choices"][0].get("dropped_tokens") for e in events[-2:]], [None, c["dropped_tokens"]])
            self.assertNotIn("dropped_tokens", self.post(path, {**body, "max_tokens": 5}).json["choices"][0])
        for more, says in (({"overflow": "jump"}, "must be stop or shift"), ({"overflow": "shift", "n_predict": 2000000}, "at most 1048576"),
                           ({"overflow": "shift", "prompt": "x" * 2048}, "context holds 2048")):
            e = self.post(LLAMA, {"prompt": "[loop ab]", **more}, 400).json["error"]
            self.assertIn(says, e["message"])
