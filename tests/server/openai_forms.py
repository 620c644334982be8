# SPDX-License-Identifier: Apache-2.0
"""Of OpenAI's dialect: where answers end, the best of several, forms that hold them, predictions, and what goes wrong."""
from servers import CHAT, LLAMA, TEXT, user


class Ends:
    def test_stop(self):
        for stop, want in (("ba", "a"), (["zz", "cad"], "abra"), ("abracadabra", ""), (["a", "ab"], ""), ("dabrax", "abracadabra"), ("", "abracadabra")):
            body = {"prompt": "[say abracadabra]", "stop": stop}
            self.assertEqual(self.post(TEXT, body).json["choices"][0]["text"], want if stop != "ba" else "abracadabra")
            e = self.post(TEXT, {**body, "stream": True}).events
            self.assertEqual("".join(c["choices"][0]["text"] for c in e[:-1]), want if stop != "ba" else "abracadabra")

    def test_many_stops(self):
        """As clients send them that play a table of people."""
        names = ["\n%s:" % name for name in ("You", "Ann", *("Guest %d" % i for i in range(126)))]
        for path, text in ((TEXT, lambda a: a["choices"][0]["text"]), (LLAMA, lambda a: a["content"])):
            for last in (names[0], names[-1]):
                self.assertEqual(text(self.post(path, {"prompt": "[say Good day.%s x]" % last, "stop": names, "max_tokens": 60}).json), "Good day.")

    def test_stop_is_held_back(self):
        """Nothing that may belong to a stop string is sent before it is known."""
        e = self.post(TEXT, {"prompt": "[say one STOX two STOP three]", "stop": "STOP", "stream": True, "max_tokens": 100}).events
        texts = [c["choices"][0]["text"] for c in e[:-1]]
        self.assertEqual("".join(texts), "one STOX two ")
        self.assertIn("STOX", texts)

    def test_stop_ends_the_generation(self):
        """The engine makes one token at most beyond a stop string, which no answer shows or counts."""
        body = {"prompt": "[loop one STOP two ][most 9]", "stop": "STOP", "max_tokens": 1000}
        for n in (1, 3):
            whole = self.post(TEXT, {**body, "n": n, "logprobs": 1}).json
            self.assertEqual(whole["usage"]["completion_tokens"], n * len("one STOP"))
            self.assertEqual([(c["text"], c["finish_reason"]) for c in whole["choices"]], n * [("one ", "stop")])
            e = self.post(TEXT, {**body, "n": n, "stream": True, "stream_options": {"include_usage": True}}).events
            self.assertEqual(e[-2]["usage"]["completion_tokens"], n * len("one STOP"))
        for delay in (0, 5):
            ended = self.post(LLAMA, {**body, "prompt": f"[delay {delay}]{body['prompt']}", "stream": True}).events[-1]
            self.assertEqual((ended["stopping_word"], ended["tokens_predicted"]), ("STOP", len("one STOP")))

    def test_stop_cuts_logprobs(self):
        p = self.post(TEXT, {"prompt": "[say abcde]", "stop": "cd", "logprobs": 1}).json["choices"][0]["logprobs"]
        self.assertEqual(p["tokens"], ["a", "b"])

    def test_half_a_character_at_the_end(self):
        a = self.post(TEXT, {"prompt": "[say é]", "max_tokens": 1}).json["choices"][0]
        self.assertEqual((a["text"], a["finish_reason"]), ("\ufffd", "length"))


class Several:
    def test_best_of_several(self):
        """The one that most say; what was cut off is no answer beside one that is whole; usage counts all."""
        for path, more in ((TEXT, lambda order: {"prompt": order}), (CHAT, lambda order: {"messages": user(order)})):
            said = lambda choice: choice["text"] if path == TEXT else choice["message"]["content"]
            answer = self.post(path, {**more("[pick blue|Red.|red|green]"), "seed": 0, "n_best": 4}).json
            self.assertEqual([said(c) for c in answer["choices"]], ["Red."])
            self.assertEqual(answer["choices"][0]["index"], 0)
            self.assertEqual(answer["choices"][0]["quality"], {"candidates": 4, "votes": 2, "mean_logprob": -0.5, "lowest_logprob": -0.5})
            self.assertEqual(answer["usage"]["completion_tokens"], len("blueRed.redgreen"))
            self.assertNotIn("logprobs", [k for k, v in answer["choices"][0].items() if v is not None])
            answer = self.post(path, {**more("[pick a long one|a long one|short]"), "seed": 0, "n_best": 3, "max_tokens": 6}).json
            self.assertEqual([said(c) for c in answer["choices"]], ["short"])
            self.assertNotIn("quality", self.post(path, {**more("[say a]"), "n_best": 1}).json["choices"][0])
        answer = self.post(TEXT, {"prompt": ["[pick a|b|b]", "[pick c|c|d]"], "n_best": 3, "seed": 0, "logprobs": 0}).json
        self.assertEqual([(c["index"], c["text"]) for c in answer["choices"]], [(0, "b"), (1, "d")])  # seeds 3, 4, 5: all the last
        self.assertTrue(all(len(c["logprobs"]["tokens"]) == 1 for c in answer["choices"]))

    def test_asked_again(self):
        """Only what failed, with what the verifier says, and so often at most; what passed is as it was without one."""
        def ask(order, status=200, **more):
            return self.post(CHAT, {"messages": user(order), "seed": 0, **more}, status).json
        answer = ask("[say wrong]", verify="^right$", verify_message="[pick right]", retries=2)
        choice = answer["choices"][0]
        self.assertEqual((choice["message"]["content"], choice["finish_reason"]), ("right", "stop"))
        self.assertEqual({k: v for k, v in choice["quality"].items() if "prob" not in k},
                         {"candidates": 1, "votes": 1, "verified": True, "attempts": 2, "spent_tokens": 5})
        passed = ask("[say right]", verify="^right$", verify_message="[pick wrong]", retries=2)["choices"][0]
        self.assertEqual((passed["message"]["content"], passed["quality"]["attempts"], passed["quality"]["spent_tokens"]), ("right", 1, 0))
        for retries in (0, 1, 3):
            failed = ask("[say wrong]", verify="right", retries=retries)["choices"][0]
            self.assertEqual((failed["message"]["content"], failed["quality"]["verified"], failed["quality"]["attempts"]), ("wrong", False, retries + 1))
        # an answer that is there is told where asking again is refused, before or behind its submission, or fails
        for message, more in (("x" * 2000, {}), ("[busy]", {}), ("[reject]", {}), ("[fail 2]", {}), ("[delay 500]", {"timeout_ms": 400})):
            kept = ask("[say wrong]", verify="right", verify_message=message, retries=3, **more)["choices"][0]
            self.assertEqual((kept["message"]["content"], kept["quality"]["verified"], kept["quality"]["attempts"]), ("wrong", False, 1), message)
        best = ask("[pick no|yes|no]", verify="yes", n_best=3)["choices"][0]  # votes are no match for a verifier
        self.assertEqual((best["message"]["content"], best["quality"]["votes"], best["quality"]["verified"]), ("yes", 1, True))
        said = ask("[pick a|a|b][sampler]", verify="never", verify_message="---\nout of it [say x]", retries=1, n_best=2)
        self.assertEqual(said["choices"][0]["quality"]["attempts"], 2)
        self.assertNotIn("quality", ask("[say a]")["choices"][0])
        # one that would go back for ever has not matched, and others do not wait for it
        self.assertIs(ask("[say " + "a" * 60 + "b]", verify="^(a+)+$", n_best=16)["choices"][0]["quality"]["verified"], False)
        for body, said, field in (({"verify": "("}, "'verify'", "verify"), ({"retries": 1}, "missing", "retries"),
                                  ({"verify": "a", "stream": True}, "cannot be verified", "verify"), ({"verify": "a", "n": 2}, "one answer", "verify"),
                                  ({"verify": "a", "n_best": 17}, "at most 16", "n_best"),
                                  ({"verify": "a", "retries": 9}, "from 0 to 8", "retries"), ({"verify_message": "a"}, "missing", "verify_message")):
            error = ask("[say a]", 400, **body)["error"]
            self.assertIn(said, error["message"])
            self.assertEqual(error["param"], field)

    def test_best_of(self):
        self.assertEqual(len(self.post(TEXT, {"prompt": "x", "best_of": 2, "n": 2}).json["choices"]), 2)
        for body in ({"best_of": 2}, {"best_of": 1, "n": 2}, {"n": 2, "best_of": 3}):
            self.assertIn("'best_of' other than 'n'", self.post(TEXT, {"prompt": "x", **body}, 400).json["error"]["message"])


class Forms:
    def test_json_object_and_grammar(self):
        self.post(CHAT, {"messages": user("x"), "response_format": {"type": "json_object"}})
        self.post(TEXT, {"prompt": "x", "grammar": "root ::= \"a\""})

    def test_structured_outputs(self):
        """vLLM's names, old and new, for a schema, an expression, choices, EBNF and GBNF."""
        for more in ({"json": {"type": "object"}}, {"json": "{\"type\": \"object\"}"}, {"regex": "a+"}, {"choice": ["a"]}, {"grammar": "start: \"a\""},
                     {"grammar": "root ::= \"a\""}, {"grammar": "root  ::= x # start:\n"}, {"json_object": True},
                     {"regex": "a+", "json": None, "json_object": False, "disable_fallback": False}, {}):
            self.post(CHAT, {"messages": user("x"), "structured_outputs": more})
            self.post(TEXT, {"prompt": "x", "structured_outputs": more, "n": 2})
            for name, value in more.items():
                if name in ("json", "regex", "choice", "grammar") and len(more) == 1:
                    self.post(CHAT, {"messages": user("x"), "guided_" + name: value})

    def test_lazy_grammar(self):
        """Its triggers are taken, and shown again."""
        triggers = [{"type": 1, "value": "<tool>"}, {"type": 0, "value": "", "token": 7}, {"type": 2, "value": "x(<tool>)"},
                    {"type": 3, "value": "[^]*<tool>"}]
        body = {"prompt": "x", "grammar": "root ::= \"<tool>\"", "grammar_lazy": True, "grammar_triggers": triggers}
        shown = self.post("/completion", body).json["generation_settings"]
        self.assertEqual((shown["grammar_lazy"], shown["grammar_triggers"]), (True, triggers))
        self.post(TEXT, body)
        self.assertEqual(self.post("/completion", {"prompt": "x"}).json["generation_settings"]["grammar_triggers"], [])

    def test_predictions(self):
        """What is predicted counts as far as it is right; numbers of guesses are in the timings, and are shown again."""
        say = {"messages": user("[say abcdef]")}
        for content in ("abXdef", [{"type": "text", "text": "abX"}, {"type": "text", "text": "def"}]):
            a = self.post(CHAT, {**say, "prediction": {"type": "content", "content": content}}).json
            details = a["usage"]["completion_tokens_details"]
            self.assertEqual(details, {"accepted_prediction_tokens": 5, "rejected_prediction_tokens": 1})
        for more in ({}, {"prediction": None}, {"prediction": {}}):
            self.assertNotIn("completion_tokens_details", self.post(CHAT, {**say, **more}).json["usage"])
        given = {**say, "prediction": {"type": "content", "content": "abXdef"}, "stop": "c"}
        self.assertEqual(self.post(CHAT, given).json["usage"]["completion_tokens_details"]["accepted_prediction_tokens"], 2)
        off = self.post(CHAT, {**given, "speculative.n_max": 0}).json["usage"]["completion_tokens_details"]
        self.assertEqual(off, {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0})
        for wrong in ("abc", {"type": "text"}, {"type": "content"}, {"type": "content", "content": [{"type": "image"}]}):
            self.assertIn("'prediction", self.post(CHAT, {**say, "prediction": wrong}, 400).json["error"]["message"])
        for field, wrong in (("speculative.n_max", -1), ("speculative.p_min", 1.5), ("speculative.n_min", "x")):
            self.assertIn(field, self.post(LLAMA, {"prompt": "x", field: wrong}, 400).json["error"]["message"])
        body = {"prompt": "x", "speculative.n_max": 3, "speculative.n_min": 1, "speculative.p_min": 0.5}
        a = self.post(LLAMA, body).json
        self.assertEqual({**a["generation_settings"], **body}, {**a["generation_settings"], "prompt": "x"})
        self.assertNotIn("draft_n", a["timings"])


class Faults:
    def test_failure(self):
        for path, body in ((CHAT, {"messages": user("[fail 2]")}), (TEXT, {"prompt": "[fail 2]"})):
            a = self.post(path, body, 500).json["error"]
            self.assertEqual((a["type"], a["message"]), ("server_error", "the model broke, as it was told"))
            e = self.post(path, {**body, "stream": True}).events
            self.assertEqual(e[-1]["error"]["message"], "the model broke, as it was told")
            self.assertNotIn("[DONE]", e)

    def test_busy(self):
        a = self.post(CHAT, {"messages": user("[busy]")}, 429)
        self.assertEqual((a.headers["retry-after"], a.json["error"]["type"]), ("7", "rate_limit_error"))

    def test_deadline(self):
        a = self.post(TEXT, {"prompt": "[delay 50][loop a]", "timeout_ms": 120, "max_tokens": 1000}, 504)
        self.assertIn("within the 120 ms of its 'timeout_ms'", a.json["error"]["message"])

    def test_a_fault_keeps_its_name(self):
        """What fails on the way from a token to its text is told as it is, to who waits and to who reads along, not as some other fault."""
        for path, body in (
            (CHAT, {"messages": user("[say ab\x1dc]")}),
            (TEXT, {"prompt": "[say ab]", "echo": True, "max_tokens": 2}),
            (LLAMA, {"prompt": "[say ab\x1dc]"}),
        ):
            if path == TEXT:
                body["prompt"] = [29, *b"[say ab]"]  # its text is made of its tokens
            a = self.post(path, body, 500).json["error"]
            self.assertEqual((a["message"], a["type"]), ("id 29 has no text, as it was told", "server_error"))
            if path != TEXT:
                e = self.post(path, {**body, "stream": True}).events
                self.assertEqual(e[-1]["error"]["message"], "id 29 has no text, as it was told")
        self.assertEqual(self.post(TEXT, {"prompt": "[say ab]"}).json["choices"][0]["text"], "ab")

    def test_notes_without_effect(self):
        self.post(CHAT, {"messages": user("x"), "store": True, "metadata": {"a": "b"}, "service_tier": "auto", "tools": [], "tool_choice": "none",
                         "parallel_tool_calls": True, "stop": None, "temperature": None, "user": "me"})
