# SPDX-License-Identifier: Apache-2.0
"""Claims about calls of functions and reasoning in answers of a chat: told apart from text, whole and streamed, without a lost character.

usage: test_tools.py build/fake_server"""
import http.client
import json
import re
import unittest

from servers import CHAT, Case, user

# A template's words, by which the core knows how its answers look.
TEMPLATE = "<think></think><tool_call>"


def function(name, **more):
    return {"name": name, "parameters": {"type": "object"}, **more}


def tool(name, **more):
    return {"type": "function", "function": function(name, **more)}


TOOLS = [tool("f"), tool("g")]


def call(name="f", arguments=None):
    return "<tool_call>\n%s\n</tool_call>" % json.dumps({"name": name, "arguments": arguments or {}}, ensure_ascii=False)


# What a model writes, and what is told of it: content, reasoning, calls.
SAID = {
    "Hello": ("Hello", None, []),
    call(): (None, None, [("f", {})]),
    call("f", {"a": {"b": "ü \"q\"\n"}, "n": 1.5}): (None, None, [("f", {"a": {"b": "ü \"q\"\n"}, "n": 1.5})]),
    "I look.\n" + call(): ("I look.", None, [("f", {})]),
    call() + "\n" + call("g", {"x": None}): (None, None, [("f", {}), ("g", {"x": None})]),
    "<think>\nHm, so.\n</think>\n\nYes." : ("Yes.", "Hm, so.", []),
    "<think>\nHm.\n</think>\n\n" + call(): (None, "Hm.", [("f", {})]),
    "<tool_call>\n{\"name\": \"f\", \"arg": ("<tool_call>\n{\"name\": \"f\", \"arg", None, []),
    "<tool_call>no call</tool_call>": ("<tool_call>no call</tool_call>", None, []),
    "<tool_cal": ("<tool_cal", None, []),
    call("h", {"a": 1}): (call("h", {"a": 1}), None, []),  # it was not offered
    "<think>\nHm": ("", "Hm", []),
}


class Told(Case):
    options = ("--template", TEMPLATE)

    def chat(self, text, order="say", status=200, **more):
        return self.post(CHAT, {"messages": user("[%s %s]" % (order, text)), **more}, status)

    def told(self, message):
        """Content, reasoning and calls of a message; every call has an id of its own, and every argument is JSON."""
        calls = message.get("tool_calls") or []
        ids = [c["id"] for c in calls]
        self.assertEqual(len(set(ids)), len(ids))
        for c in calls:
            self.assertEqual((sorted(c), c["type"], sorted(c["function"])), (["function", "id", "type"], "function", ["arguments", "name"]))
            self.assertRegex(c["id"], "^[0-9A-Za-z]{9}$")
        self.assertEqual("tool_calls" in message, bool(calls))
        self.assertEqual("reasoning_content" in message, bool(message.get("reasoning_content")))
        return message["content"], message.get("reasoning_content"), [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]

    def joined(self, events):
        """The message that the deltas of a stream make, as OpenAI's clients join them, and how it finished. Each event has one choice and one kind."""
        message, finish = {"content": "", "reasoning_content": "", "tool_calls": []}, None
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(events[0]["choices"][0]["delta"], {"role": "assistant", "content": "", "refusal": None})
        for e in events[1:-1]:
            [choice] = e["choices"]
            self.assertIsNone(finish)
            finish = choice["finish_reason"]
            self.assertLessEqual(len(choice["delta"]), 1)
            for kind, value in choice["delta"].items():
                if kind == "tool_calls":
                    for c in value:
                        self.assertEqual(c.pop("index"), len(message["tool_calls"]))
                        message["tool_calls"].append(c)
                else:
                    self.assertTrue(value or choice["logprobs"])
                    message[kind] += value
        for kind in ("reasoning_content", "tool_calls"):
            if not message[kind]:
                del message[kind]
        if "tool_calls" in message and not message["content"]:
            message["content"] = None
        return message, finish

    def test_what_an_answer_says(self):
        for text, want in SAID.items():
            choice = self.chat(text, tools=TOOLS).json["choices"][0]
            self.assertEqual(self.told(choice["message"]), want, text)
            self.assertEqual(choice["finish_reason"], "tool_calls" if want[2] else "stop")
            events = self.chat(text, tools=TOOLS, stream=True).events
            message, finish = self.joined(events)
            self.assertEqual((self.told(message), finish), (want, choice["finish_reason"]), text)

    def test_text_and_thoughts_are_not_held_back(self):
        """Each token of them is an event, as soon as it cannot be the beginning of a marker."""
        events = self.chat("<think>\nHm, so.\n</think>\n\nYes, it is so.", tools=TOOLS, stream=True).events
        deltas = [e["choices"][0]["delta"] for e in events[1:-2]]
        self.assertGreater(len([d for d in deltas if "reasoning_content" in d]), 4)
        self.assertGreater(len([d for d in deltas if "content" in d]), 8)

    def test_without_tools_calls_are_text(self):
        text = "I look.\n" + call()
        for more in ({}, {"tools": []}, {"tools": TOOLS, "tool_choice": "none"}, {"tools": TOOLS, "parse_tool_calls": False},
                     {"functions": [function("f")], "function_call": "none"}):
            choice = self.chat(text, **more).json["choices"][0]
            self.assertEqual((choice["message"]["content"], choice["finish_reason"]), (text, "stop"), more)
            self.assertNotIn("tool_calls", choice["message"])

    def test_the_tools_are_shown_to_the_model(self):
        def prompt(**more):
            return self.post("/apply-template", {"messages": user("x"), **more}).json["prompt"]
        self.assertEqual(json.loads(re.search(r"\[.*\]", prompt(tools=TOOLS)).group()), TOOLS)
        self.assertEqual(json.loads(re.search(r"\[.*\]", prompt(functions=[function("f")])).group()), [tool("f")])
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "g"}}]}}
        self.assertEqual(json.loads(re.search(r"\[.*\]", prompt(tools=TOOLS, tool_choice=allowed)).group()), [tool("g")])
        for more in ({}, {"tools": []}, {"tools": TOOLS, "tool_choice": "none"}):
            self.assertNotIn("[", prompt(**more))

    def test_functions_of_before_there_were_tools(self):
        text = "I look.\n" + call("f", {"a": 1}) + "\n" + call("g")
        choice = self.chat(text, functions=[function("f")]).json["choices"][0]
        f = {"name": "f", "arguments": "{\"a\": 1}"}
        self.assertEqual(choice["message"], {"role": "assistant", "content": "I look.", "function_call": f, "refusal": None})
        self.assertEqual(choice["finish_reason"], "function_call")
        deltas = [e["choices"][0] for e in self.chat(text, functions=[function("f")], stream=True).events[:-1]]
        self.assertEqual([d["delta"]["function_call"] for d in deltas if "function_call" in d["delta"]], [f])
        self.assertEqual(deltas[-1]["finish_reason"], "function_call")

    def test_one_call_ends_the_answer_where_several_are_not_wanted(self):
        text = call() + "\n" + call("g") + "and more"
        for stream in (False, True):
            answer = self.chat(text, tools=TOOLS, parallel_tool_calls=False, stream=stream, **({"stream_options": {"include_usage": True}} if stream else {}))
            if stream:
                usage = answer.events[-2]["usage"]
                message, finish = self.joined(answer.events[:-2] + answer.events[-1:])
            else:
                usage, message, finish = answer.json["usage"], answer.json["choices"][0]["message"], answer.json["choices"][0]["finish_reason"]
            self.assertEqual((self.told(message), finish), ((None, None, [("f", {})]), "tool_calls"))
            self.assertEqual(usage["completion_tokens"], len(call()))  # a token a byte: nothing was written behind it
        self.assertEqual(self.told(self.chat(text, tools=TOOLS).json["choices"][0]["message"])[2], [("f", {}), ("g", {})])

    def test_broken_off(self):
        """Where the tokens end within a call, all of its text is there; behind one, the call is, and the reason is still the length."""
        text = "I look.\n" + call("f", {"a": 1})
        for n in range(1, len(text) + 1):
            for stream in (False, True):
                answer = self.chat(text, tools=TOOLS, max_tokens=n, stream=stream)
                if stream:
                    message, finish = self.joined(answer.events)
                else:
                    message, finish = answer.json["choices"][0]["message"], answer.json["choices"][0]["finish_reason"]
                content, _, calls = self.told(message)
                self.assertEqual(finish, "length")
                if not calls:
                    self.assertEqual(content.rstrip(), text[:n].rstrip())
                else:
                    self.assertEqual((content, calls), ("I look.", [("f", {"a": 1})]))
        self.assertTrue(calls)

    def test_stop_strings_end_what_the_model_writes(self):
        for stop, want in (("</tool", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}"), ("name", "<tool_call>\n{\"")):
            message = self.chat(call(), tools=TOOLS, stop=stop).json["choices"][0]["message"]
            content, _, calls = self.told(message)
            self.assertTrue(calls == [("f", {})] or content.rstrip() == want, message)
        self.assertEqual(self.told(self.chat("<think>\nHm.\n</think>\n\nYes.", stop="m").json["choices"][0]["message"]), ("", "H", []))

    def test_several_answers_with_logprobs(self):
        text = "<think>\nHm.\n</think>\n\n" + call() + "\n" + call("g")
        more = {"tools": TOOLS, "n": 3, "logprobs": True, "top_logprobs": 1}
        whole = self.chat(text, **more).json["choices"]
        self.assertEqual([self.told(c["message"]) for c in whole], 3 * [(None, "Hm.", [("f", {}), ("g", {})])])
        ids = [t["id"] for c in whole for t in c["message"]["tool_calls"]]
        self.assertEqual(len(set(ids)), 6)
        streamed = [[], [], []]
        for e in self.chat(text, stream=True, **more).events[:-1]:
            [c] = e["choices"]
            streamed[c["index"]] += c["logprobs"]["content"] if c["logprobs"] else []
        for i, c in enumerate(whole):
            self.assertEqual("".join(t["token"] for t in c["logprobs"]["content"]), text)
            self.assertEqual(streamed[i], c["logprobs"]["content"])

    def test_formats_of_reasoning(self):
        text = "<think>\nHm, so.\n</think>\n\nYes."
        for how, want in ((None, ("Yes.", "Hm, so.", [])), ("auto", ("Yes.", "Hm, so.", [])), ("deepseek", ("Yes.", "Hm, so.", [])), ("none", (text, None, [])),
                          ("deepseek-legacy", ("<think>Hm, so.</think>Yes.", "Hm, so.", []))):
            self.assertEqual(self.told(self.chat(text, reasoning_format=how).json["choices"][0]["message"]), want, how)
            self.assertEqual(self.told(self.joined(self.chat(text, reasoning_format=how, stream=True).events)[0]), want, how)

    def test_a_budget_ends_the_thinking(self):
        """After so many tokens of it, in the words of the model's own; what it wrote by itself then is its answer."""
        for stream in (False, True):
            def ask(text, **more):
                answer = self.chat(text, stream=stream, **more)
                return self.told(self.joined(answer.events)[0] if stream else answer.json["choices"][0]["message"])
            # A token is a byte: of its script, the model writes what the budget cut off as an answer.
            self.assertEqual(ask("<think>\nHm, so it is.", thinking_budget_tokens=3), (", so it is.", "Hm", []))
            self.assertEqual(ask("<think>\nHm, so it is.", reasoning_budget_tokens=0), ("Hm, so it is.", None, []))
            for budget in (-1, 100, None):
                self.assertEqual(ask("<think>\nHm.\n</think>\n\nYes.", thinking_budget_tokens=budget), ("Yes.", "Hm.", []), budget)
            self.assertEqual(ask("Yes.", thinking_budget_tokens=0), ("Yes.", None, []))
            for n in range(len("<think>\nHm</think>\n\n") + 1):  # what was cut of the end is no thought
                said = ask("<think>\nHm, so", thinking_budget_tokens=3, max_tokens=n) if n else None
                self.assertIn(said, [None, ("<think>"[:n], None, []) if n < 7 else ("", None, []), ("", "H", []), ("", "Hm", [])], n)
            self.assertEqual(ask("<think>\nHm, so", thinking_budget_tokens=3, max_tokens=14), ("", "Hm", []))
            # A character that is not whole is the model's to complete.
            self.assertEqual(ask("<think>\nHé, so", thinking_budget_tokens=3), (", so", "Hé", []))

    def test_what_a_constraint_is_on(self):
        """A JSON format is on all of the answer, and none of it is taken for anything else; a grammar may have thoughts in it."""
        text = "<think>\nHm.\n</think>\n\nYes."
        self.assertEqual(self.told(self.chat(text, grammar="root ::= [a-z]").json["choices"][0]["message"]), ("Yes.", "Hm.", []))
        for budget in ({"thinking_budget_tokens": 0}, {"reasoning_budget_tokens": 3}):  # its end would be no text of the grammar
            error = self.chat(text, grammar="root ::= [a-z]", status=400, **budget).json["error"]
            self.assertEqual(error["param"], "grammar")
            self.assertIn("budget for thinking", error["message"])
        self.chat(text, grammar="root ::= [a-z]", thinking_budget_tokens=-1)

    def test_thoughts_before_a_form(self):
        """What is held to a form begins behind them, and of it nothing is a marker; where thoughts are text or turned off, all of the answer is."""
        text = "<think>\nHm.\n</think>\n\n{\"a\": \"</think>\"}"
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
        said = ('{"a": "</think>"}', "Hm.", [])
        off = {"chat_template_kwargs": {"enable_thinking": False}}
        for stream in (False, True):
            for more, want in (
                ({"response_format": form}, said),
                ({"response_format": {"type": "json_object"}}, said),
                ({"json_schema": {"type": "object"}}, said),
                ({"structured_outputs": {"regex": "a+"}}, said),
                ({"response_format": form, "reasoning_format": "deepseek"}, said),
                ({"response_format": form, "thinking_budget_tokens": 2}, ('m.\n</think>\n\n{"a": "</think>"}', "H", [])),
                ({"response_format": form, **off}, (text, None, [])),
                ({"response_format": form, "reasoning_format": "none"}, (text, None, [])),
            ):
                answer = self.chat(text, stream=stream, **more)
                self.assertEqual(self.told(self.joined(answer.events)[0] if stream else answer.json["choices"][0]["message"]), want, more)

    def test_a_call_that_must_be(self):
        """The answer is held to it: the grammar is the engine's; here, what is asked for comes through, and a schema that cannot be held to is named."""
        named = {"type": "function", "function": {"name": "f"}}
        for choice in ("required", named, {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}):
            choice = self.chat(call(), tools=TOOLS, tool_choice=choice).json["choices"][0]
            self.assertEqual((self.told(choice["message"])[2], choice["finish_reason"]), ([("f", {})], "tool_calls"))
        self.assertEqual(self.chat(call(), functions=[function("f")], function_call={"name": "f"}).json["choices"][0]["finish_reason"], "function_call")
        refused = tool("f", parameters={"contains": {"const": 1}})
        self.assertEqual(self.told(self.chat(call(), tools=[refused]).json["choices"][0]["message"])[2], [("f", {})])  # nothing is held to it
        for more in ({"tool_choice": "required"}, {"tools": [tool("f", parameters={"contains": {"const": 1}}, strict=True)]}):
            error = self.chat(call(), status=400, **{"tools": [refused], **more}).json["error"]
            self.assertIn("tools[0].function.parameters: schema: #/contains", error["message"])

    def test_a_form_beside_tools(self):
        """The answer is of the form, or it calls: what is told apart here; the grammar is the engine's. Where calls must be there is no form."""
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
        forms = ({"response_format": schema}, {"response_format": {"type": "json_object"}}, {"json_schema": {"type": "object"}},
                 {"structured_outputs": {"json": {"type": "object"}}})
        wants = {'{"a": "<tool_call>"}': ('{"a": "<tool_call>"}', None, []), call(): (None, None, [("f", {})]),
                 call() + "\n" + call("g", {"x": 1}): (None, None, [("f", {}), ("g", {"x": 1})]),
                 "<think>\nHm.\n</think>\n\n" + call(): (None, "Hm.", [("f", {})]),
                 "<think>\nHm.\n</think>\n\n{}": ("{}", "Hm.", []), '{"name": "f", "arguments": {}}': ('{"name": "f", "arguments": {}}', None, [])}
        for more in forms:
            for text, want in wants.items():
                choice = self.chat(text, tools=TOOLS, **more).json["choices"][0]
                self.assertEqual(self.told(choice["message"]), want, text)
                self.assertEqual(choice["finish_reason"], "tool_calls" if want[2] else "stop")
                message, finish = self.joined(self.chat(text, tools=TOOLS, stream=True, **more).events)
                self.assertEqual((self.told(message), finish), (want, choice["finish_reason"]), text)
            for choice in ("required", {"type": "function", "function": {"name": "f"}}):
                self.assertEqual(self.told(self.chat(call(), tools=TOOLS, tool_choice=choice, **more).json["choices"][0]["message"])[2], [("f", {})])
            self.assertEqual(self.chat('{"a": 1}', tools=TOOLS, tool_choice="none", **more).json["choices"][0]["message"]["content"], '{"a": 1}')
        bad = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"contains": {"const": 1}}}}
        error = self.chat("{}", status=400, tools=TOOLS, response_format=bad).json["error"]
        self.assertEqual(error["param"], "response_format")
        self.assertIn("'response_format': schema: #/contains", error["message"])
        error = self.chat("{}", status=400, tools=[tool("f", parameters={"contains": {"const": 1}}, strict=True)], response_format=schema).json["error"]
        self.assertEqual(error["param"], "tools")

    def test_a_form_has_no_thoughts_where_they_are_text(self):
        """None, and the older deepseek's way: content is what the form allows; what the template has begun ends at once, and is nowhere."""
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
        for way in ("none", "deepseek-legacy"):
            for stream in (False, True):
                answer = self.chat('{"a": 1}', response_format=schema, reasoning_format=way, stream=stream, thinking_budget_tokens=1)
                message = self.joined(answer.events)[0] if stream else answer.json["choices"][0]["message"]
                self.assertEqual(self.told(message), ('{"a": 1}', None, []), way)

    def test_a_conversation_with_calls_goes_on(self):
        messages = [
            *user("[say Rain.]"),
            {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [{"id": "abcdefgh1", "type": "function",
                                                                                              "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "abcdefgh1", "content": "rain"},
        ]
        self.assertEqual(self.post(CHAT, {"messages": messages, "tools": TOOLS}).json["choices"][0]["message"]["content"], "Rain.")

    def test_without_memory_an_answer_fails_and_is_not_less(self):
        text = "<think>\nHm.\n</think>\n\nI look.\n" + call() + "\n" + call("g")
        want = ("I look.", "Hm.", [("f", {}), ("g", {})])
        good = 0
        for every in (37, 53, 97, 211, 1009, 4001):
            server = self.own("--template", TEMPLATE, "--fail-every", every)
            for stream in (False, True):
                try:
                    answer = server.post(CHAT, {"messages": user("[say %s]" % text), "tools": TOOLS, "stream": stream})
                except (OSError, http.client.HTTPException):
                    continue
                if answer.status != 200 or b'"error"' in answer.body:
                    self.assertIn(b"memory", answer.body)
                    continue
                message = self.joined(answer.events)[0] if stream else answer.json["choices"][0]["message"]
                self.assertEqual(self.told(message), want)
                good += 1
        self.assertGreater(good, 0)


class Plain(Case):
    def test_it_has_no_thoughts_to_be_bounded(self):
        for name in ("thinking_budget_tokens", "reasoning_budget_tokens"):
            error = self.post(CHAT, {"messages": user("x"), name: 5}, 400).json["error"]
            self.assertEqual(error["param"], name)
            self.assertIn("knows no thinking", error["message"])

    def test_a_template_without_thoughts(self):
        """Its answers are text, white space and all, unless tools are offered."""
        text = "<think>\nHm.\n</think>\n\nYes. "
        for stream in (False, True):
            answer = self.post(CHAT, {"messages": user("[say %s]" % text), "stream": stream})
            if stream:
                said = "".join(e["choices"][0]["delta"].get("content") or "" for e in answer.events[:-1])
            else:
                said = answer.json["choices"][0]["message"]["content"]
            self.assertEqual(said, text)


if __name__ == "__main__":
    unittest.main(verbosity=1)
