# SPDX-License-Identifier: Apache-2.0
"""Claims about the server over a scripted model (fake_engine.c): answers in both dialects, as the documents say them.

usage: test_server.py build/fake_server"""
import base64
import hashlib
import http.client
import json
import math
import os
import re
import resource
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from servers import CHAT, FAKE, LLAMA, PATIENCE, ROOT, TEXT, Case, Server, request, user, wait_until


class OpenAI(Case):
    def test_models(self):
        models = self.server.get("/v1/models").json
        self.assertEqual([m["id"] for m in models["data"]], ["fake"])
        self.assertEqual(self.server.get("/v1/models/fake").json["object"], "model")
        self.assertEqual(self.server.get("/v1/models/other").json["error"]["code"], "model_not_found")

    def test_chat(self):
        a = self.post(CHAT, {"model": "fake", "messages": user("[say Good day.]")}).json
        self.assertEqual(a["object"], "chat.completion")
        self.assertTrue(a["id"].startswith("chatcmpl-"))
        choice = a["choices"][0]
        self.assertEqual(choice["message"], {"role": "assistant", "content": "Good day.", "refusal": None})
        self.assertEqual((choice["finish_reason"], choice["logprobs"]), ("stop", None))
        self.assertEqual(a["usage"]["completion_tokens"], 9)
        self.assertEqual(a["usage"]["total_tokens"], a["usage"]["prompt_tokens"] + 9)

    def test_chat_stream(self):
        e = self.post(CHAT, {"messages": user("[say Zoë]"), "stream": True, "stream_options": {"include_usage": True}}).events
        self.assertEqual(e[-1], "[DONE]")
        self.assertEqual(e[0]["choices"][0]["delta"], {"role": "assistant", "content": "", "refusal": None})
        self.assertEqual([c["choices"][0]["delta"].get("content") for c in e[1:-3]], ["Z", "o", "ë"])
        self.assertEqual((e[-3]["choices"][0]["finish_reason"], e[-3]["choices"][0]["delta"]), ("stop", {}))
        self.assertEqual((e[-2]["choices"], e[-2]["usage"]["completion_tokens"]), ([], 4))
        self.assertTrue(all(c["usage"] is None for c in e[:-2]))
        self.assertEqual(len({c["id"] for c in e[:-1]}), 1)

    def test_stream_headers(self):
        a = self.post(CHAT, {"messages": user("x"), "stream": True})
        self.assertTrue(a.headers["content-type"].startswith("text/event-stream"))
        self.assertEqual(a.headers["transfer-encoding"], "chunked")
        self.assertNotIn("usage", a.events[0])

    def test_content_parts(self):
        parts = [{"type": "text", "text": "[say a"}, {"type": "text", "text": "b]"}]
        a = self.post(CHAT, {"messages": [{"role": "developer", "content": "s"}, {"role": "user", "content": parts}]}).json
        self.assertEqual(a["choices"][0]["message"]["content"], "a\nb")

    def test_length(self):
        for body in (
            {"max_tokens": 3},
            {"max_completion_tokens": 3},
            {"max_completion_tokens": 3, "max_tokens": 3},
            {"max_completion_tokens": None, "max_tokens": 3},
        ):
            a = self.post(CHAT, {"messages": user("[loop ab]"), **body}).json
            self.assertEqual((a["choices"][0]["message"]["content"], a["choices"][0]["finish_reason"]), ("aba", "length"))
        for body in ({"max_completion_tokens": 3, "max_tokens": 9}, {"max_tokens": 9, "max_completion_tokens": 3}):
            error = self.post(CHAT, {"messages": user("[loop ab]"), **body}, 400).json["error"]
            self.assertEqual((error["param"], "'max_completion_tokens' is 3 and 'max_tokens' is 9" in error["message"]), ("max_tokens", True))

    def test_context_ends(self):
        a = self.post(CHAT, {"messages": user("[loop ab]"), "max_tokens": 100000}).json
        self.assertEqual((a["choices"][0]["finish_reason"], a["usage"]["total_tokens"]), ("length", 2048))

    def test_n_and_seeds(self):
        a = self.post(CHAT, {"messages": user("[seed]"), "seed": 41, "n": 3}).json
        self.assertEqual([c["message"]["content"] for c in a["choices"]], ["41", "42", "43"])
        a = self.post(TEXT, {"prompt": ["[seed]", "[seed] "], "seed": 7, "n": 2}).json
        self.assertEqual([(c["index"], c["text"]) for c in a["choices"]], [(0, "7"), (1, "8"), (2, "9"), (3, "10")])
        seeds = {self.post(TEXT, {"prompt": "[seed]", "max_tokens": 30}).json["choices"][0]["text"] for _ in range(4)}
        self.assertEqual(len(seeds), 4)

    def test_n_streams(self):
        e = self.post(CHAT, {"messages": user("[seed]"), "seed": 5, "n": 2, "stream": True}).events
        texts = {0: "", 1: ""}
        for c in e[:-1]:
            texts[c["choices"][0]["index"]] += c["choices"][0]["delta"].get("content", "")
        self.assertEqual(texts, {0: "5", 1: "6"})
        self.assertEqual(sum(c["choices"][0]["finish_reason"] == "stop" for c in e[:-1]), 2)

    def test_chat_logprobs(self):
        a = self.post(CHAT, {"messages": user("[say é!]"), "logprobs": True, "top_logprobs": 2}).json
        tokens = a["choices"][0]["logprobs"]["content"]
        self.assertEqual([t["bytes"] for t in tokens], [[0xc3], [0xa9], [0x21]])
        self.assertEqual([t["logprob"] for t in tokens], [-0.5] * 3)
        self.assertEqual([(p["token"], p["logprob"]) for p in tokens[2]["top_logprobs"]], [("!", -0.5), ('"', -1.5)])
        e = self.post(CHAT, {"messages": user("[say é!]"), "logprobs": True, "stream": True}).events
        streamed = [t["bytes"] for c in e[:-1] if c["choices"][0]["logprobs"] for t in c["choices"][0]["logprobs"]["content"]]
        self.assertEqual(streamed, [[0xc3], [0xa9], [0x21]])

    def test_completion_logprobs_and_echo(self):
        a = self.post(TEXT, {"prompt": "hé[say xy]", "logprobs": 1, "echo": True}).json["choices"][0]
        self.assertEqual(a["text"], "hé[say xy]xy")
        p = a["logprobs"]
        self.assertEqual(p["tokens"][-2:], ["x", "y"])
        self.assertEqual((p["token_logprobs"][:2], p["top_logprobs"][0]), ([None, -0.25], None))
        self.assertEqual(p["text_offset"][:4], [0, 0, 1, 1])  # BOS, h, and the two halves of é
        self.assertEqual(p["text_offset"][-2:], [10, 11])
        self.assertEqual(p["top_logprobs"][-1], {"y": -0.5})
        a = self.post(TEXT, {"prompt": "hé[say xy]", "logprobs": 0}).json["choices"][0]
        self.assertEqual((a["text"], a["logprobs"]["text_offset"], a["logprobs"]["top_logprobs"]), ("xy", [10, 11], [None, None]))

    def test_the_token_is_among_the_likeliest(self):
        """OpenAI's top_logprobs have it beside the likeliest, where it is none of them; a name stands once."""
        a = self.post(TEXT, {"prompt": "[unlikely][say b]", "logprobs": 2, "echo": True}).json["choices"][0]["logprobs"]
        self.assertEqual(a["top_logprobs"][-1], {"c": 0.5, "d": -0.5, "b": -0.5})
        self.assertEqual(a["top_logprobs"][1], {"\\": 0.75, "]": -0.25, "[": -0.25})
        self.assertTrue(all(token in top for token, top in zip(a["tokens"][1:], a["top_logprobs"][1:])), a)
        self.assertIsNone(a["top_logprobs"][0])
        e = self.post(TEXT, {"prompt": "[unlikely][say b]", "logprobs": 1, "stream": True}).events
        self.assertEqual(e[0]["choices"][0]["logprobs"]["top_logprobs"], [{"c": 0.5, "b": -0.5}])

    def test_token_names_stay_apart(self):
        """Tokens that are no UTF-8 alone, or spell the same, do not share a key of top_logprobs."""
        def once(pairs):
            self.assertEqual(len(dict(pairs)), len(pairs), pairs)
            return dict(pairs)

        def names(text):
            body = self.post(TEXT, {"prompt": "[say %s]" % text, "logprobs": 3, "max_tokens": 2}).body
            p = json.loads(body, object_pairs_hook=once)["choices"][0]["logprobs"]
            return p["tokens"], [list(top) for top in p["top_logprobs"]]
        tokens, tops = names("é")
        self.assertEqual(tokens, ["bytes:\\xc3", "bytes:\\xa9"])
        self.assertEqual(tops, [["bytes:\\xc3", "bytes:\\xc4", "bytes:\\xc5"], ["bytes:\\xa9", "bytes:\\xaa", "bytes:\\xab"]])
        self.assertEqual(names("~")[1][0], ["~", "bytes:\\x80"])  # 126 and 127 both read "~"

    def test_seeds_of_64_bits(self):
        for seed in (2 ** 53 + 1, 2 ** 63 - 1, -2 ** 63, 0):
            a = self.post(TEXT, {"prompt": "[seed]", "seed": seed, "max_tokens": 30}).json["choices"][0]["text"]
            self.assertEqual(int(a), seed % 2 ** 64)
        a = self.post(LLAMA, {"prompt": "[seed]", "seed": 2 ** 53 + 1}).json["generation_settings"]
        self.assertEqual(a["seed"], 2 ** 53 + 1)
        for path, seed, words in ((TEXT, 2 ** 63, "out of range: it must fit in 64 bits"), (TEXT, -2 ** 63 - 1, "out of range: it must fit in 64 bits"),
                                  (LLAMA, -2 ** 63 - 1, "out of range: it must fit in 64 bits")):
            self.assertIn(words, self.post(path, {"prompt": "x", "seed": seed}, 400).json["error"]["message"])

    def test_echo_alone(self):
        a = self.post(TEXT, {"prompt": "abc", "echo": True, "max_tokens": 0, "logprobs": 1}).json["choices"][0]
        self.assertEqual((a["text"], len(a["logprobs"]["tokens"])), ("abc", 4))
        e = self.post(TEXT, {"prompt": "abc", "echo": True, "max_tokens": 2, "stream": True}).events
        self.assertEqual("".join(c["choices"][0]["text"] for c in e[:-1]), "abcHe")

    def test_prompt_forms(self):
        ids = list(b"[say ok]")
        for prompt in ("[say ok]", ids, ["[say ok]"], [ids]):
            self.assertEqual(self.post(TEXT, {"prompt": prompt}).json["choices"][0]["text"], "ok")

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

    def test_embeddings(self):
        a = self.post("/v1/embeddings", {"model": "fake", "input": ["a", "bcd"]}).json
        self.assertEqual([d["index"] for d in a["data"]], [0, 1])
        self.assertEqual(a["data"][0]["embedding"], [-0.5, 0, 0.75] + [0] * 13)
        self.assertEqual(a["usage"], {"prompt_tokens": 6, "total_tokens": 6})
        many = self.post("/v1/embeddings", {"input": ["x" * (1 + i % 8) for i in range(2048)]}).json["data"]  # many times what the queue holds
        self.assertEqual([(d["index"], d["embedding"][2 + i % 8]) for i, d in enumerate(many)], [(i, 0.75) for i in range(2048)])
        self.assertIn("at most 2048 prompts, not 2049", self.post("/v1/embeddings", {"input": ["x"] * 2049}, 400).json["error"]["message"])
        coded = self.post("/v1/embeddings", {"input": "a", "encoding_format": "base64"}).json["data"][0]["embedding"]
        self.assertEqual(list(struct.unpack("<16f", base64.b64decode(coded))), a["data"][0]["embedding"])

    def test_embeddings_that_end_early(self):
        """Inputs are asked for a few at a time: what is wrong with a late one is the answer, and who leaves has the others not asked for."""
        asked = self.server.metric("weft_embeddings_total")
        for word, status, message in (("[busy]", 429, "the queue is full"), ("[reject]", 400, "does not like this request")):
            for at in (0, 1500):
                answer = self.post("/v1/embeddings", {"input": ["x"] * at + [word] + ["x"] * (2000 - at)}, status)
                self.assertIn(message, answer.json["error"]["message"])
                self.assertEqual(answer.headers.get("retry-after"), "7" if status == 429 else None)
        self.assertLessEqual(self.server.metric("weft_embeddings_total") - asked, 2 * 1500)
        left = self.own()
        with left.connect() as s:
            s.sendall(request({"input": ["[queue 20] x"] * 2000}, "/v1/embeddings"))
            while not left.metric("weft_embeddings_total"):
                time.sleep(0.01)
        for name in ("weft_running", "weft_waiting"):
            self.assertEqual(left.wait_metric(name, 0), 0)
        self.assertEqual(left.wait_metric("weft_http_requests", 1), 1)
        self.assertLess(left.metric("weft_embeddings_total"), 1000)

    def test_special_tokens_in_messages_stay_text(self):
        plain = self.post(CHAT, {"messages": user("x")}).json["usage"]["prompt_tokens"]
        spelled = self.post(CHAT, {"messages": user("</s>")}).json["usage"]["prompt_tokens"]
        self.assertEqual(spelled - plain, 3)

    def test_what_the_sampler_takes(self):
        """OpenAI's penalties see all of the text; a window that no context fills is all of it, and takes no memory of its own."""
        def sampler(path, **more):
            a = self.post(path, ({"messages": user("[sampler]")} if path == CHAT else {"prompt": "[sampler]"}) | more).json
            return a["content"] if path == LLAMA else a["choices"][0]["message"]["content"] if path == CHAT else a["choices"][0]["text"]
        self.assertEqual(sampler(CHAT), "1 0 -1")
        self.assertEqual(sampler(TEXT, repetition_penalty=1.5), "1 0 -1")
        self.assertEqual(sampler(LLAMA), "0.8 40 64")
        for window, want in ((-1, -1), (0, 0), (2047, 2047), (2048, -1), (2147483647, -1)):
            self.assertEqual(sampler(LLAMA, repeat_last_n=window), "0.8 40 %d" % want)
        self.assertEqual(sampler(LLAMA, temperature=-0.5, top_k=-1), "0 0 64")  # as llama.cpp takes them: the likeliest, and off
        self.assertEqual(sampler(TEXT, top_k=-1), "1 0 -1")  # vLLM's off

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


class Llama(Case):
    def test_completion(self):
        a = self.post(LLAMA, {"prompt": "[say a\nb]", "n_predict": 10, "return_tokens": True, "seed": 3, "temperature": 0}).json
        self.assertEqual((a["content"], a["stop"], a["stop_type"], a["has_new_line"]), ("a\nb", True, "eos", True))
        self.assertEqual(a["tokens"], list(b"a\nb"))
        self.assertEqual((a["tokens_predicted"], a["tokens_evaluated"], a["truncated"]), (3, 10, False))
        self.assertEqual((a["generation_settings"]["seed"], a["generation_settings"]["temperature"]), (3, 0))
        self.assertEqual(a["timings"]["predicted_n"], 3)
        self.assertEqual(a["prompt"], "[say a\nb]")

    def test_limits_and_words(self):
        a = self.post(LLAMA, {"prompt": "[loop ab]", "n_predict": 5}).json
        self.assertEqual((a["content"], a["stop_type"]), ("ababa", "limit"))
        for limits in (
            {"max_completion_tokens": 3, "n_predict": 5},
            {"n_predict": 5, "max_tokens": 3, "max_completion_tokens": 2},
            {"max_tokens": 3, "max_completion_tokens": 5},
            {"n_predict": None, "max_tokens": 5},
        ):  # llama-server's order, whatever that of the body
            self.assertEqual(self.post(LLAMA, {"prompt": "[loop ab]", **limits}).json["content"], "ababa", limits)
        for n in ({"n_cmpl": 3}, {"n": 3}, {"n": 5, "n_cmpl": 3}, {"n_cmpl": 3, "n": 5}):
            self.assertEqual([c["content"] for c in self.post(LLAMA, {"prompt": "[say a]", **n}).json], ["a"] * 3, n)
        for off in (-1, 0, None):
            self.post(LLAMA, {"prompt": "x", "t_max_predict_ms": off})
        for probs in ({"logprobs": 2}, {"logprobs": 5, "n_probs": 2}, {"n_probs": 2, "logprobs": 5}):
            a = self.post(LLAMA, {"prompt": "[say a]", **probs}).json
            self.assertEqual(len(a["completion_probabilities"][0]["top_logprobs"]), 2, probs)
        for probs, n in (
            ({"logprobs": True}, 1),
            ({"logprobs": True, "n_probs": 2}, 2),
            ({"n_probs": 0, "logprobs": True}, 1),
            ({"logprobs": False}, 0),
            ({"logprobs": None}, 0),
        ):
            a = self.post(LLAMA, {"prompt": "[say a]", **probs}).json
            self.assertEqual([len(p["top_logprobs"]) for p in a.get("completion_probabilities", [])], [n] * (n > 0), probs)
        a = self.post(LLAMA, {"prompt": "[say one two]", "stop": ["tw"]}).json
        self.assertEqual((a["content"], a["stop_type"], a["stopping_word"]), ("one ", "word", "tw"))

    def test_stream(self):
        e = self.post(LLAMA, {"prompt": "[say xyz]", "stream": True, "timings_per_token": True}).events
        self.assertEqual([(c["content"], c["stop"]) for c in e], [("x", False), ("y", False), ("z", False), ("", True)])
        self.assertEqual([c["tokens"] for c in e], [[120], [121], [122], []])  # whether asked for or not
        self.assertEqual((e[-1]["tokens_predicted"], e[-1]["stop_type"]), (3, "eos"))
        self.assertIn("timings", e[0])
        e = self.post(LLAMA, {"prompt": "[say aé!b]", "stream": True, "stop": "!"}).events
        self.assertEqual([(c["content"], c["tokens"]) for c in e], [("a", [97]), ("é", [195, 169]), ("", [])])

    def test_probabilities(self):
        p = self.post(LLAMA, {"prompt": "[say x]", "n_probs": 2}).json["completion_probabilities"]
        self.assertEqual(p[0]["id"], ord("x"))
        self.assertEqual([(t["id"], t["logprob"]) for t in p[0]["top_logprobs"]], [(120, -0.5), (121, -1.5)])

    def test_prompts(self):
        a = self.post(LLAMA, {"prompt": ["[say a]", "[say b]"]}).json
        self.assertEqual([(c["index"], c["content"]) for c in a], [(0, "a"), (1, "b")])
        self.assertEqual(self.post(LLAMA, {"prompt": [*b"[say ", "ok]"]}).json["content"], "ok")
        self.assertEqual(self.post("/completions", {"prompt": "[say ok]"}).json["content"], "ok")

    def test_unknown_fields_are_ignored(self):
        self.post(LLAMA, {"prompt": "x", "brand_new": {"a": 1}})

    def test_the_order_of_samplers(self):
        """Only that of this server, with or without those of llama.cpp's that it does not have, and that are off; those that are not named are off, too."""
        ours, default = ["penalties", "top_k", "top_p", "min_p", "temperature"], [
            "penalties",
            "dry",
            "top_n_sigma",
            "top_k",
            "typ_p",
            "top_p",
            "min_p",
            "xtc",
            "temperature",
        ]
        documented = [
            ["dry", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
            ["top_k", "tfs_z", "typical_p", "top_p", "min_p", "temperature"],
        ]  # llama.cpp's READMEs
        given = {"repeat_penalty": 2, "presence_penalty": 1, "frequency_penalty": 1, "top_k": 7, "top_p": 0.5, "min_p": 0.25, "temperature": 0.5}
        off = {"repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "top_k": 0, "top_p": 1, "min_p": 0, "temperature": 1}
        penalties = {k: v for k, v in off.items() if "penalty" in k}
        for samplers, changed in (
            (None, {}),
            (ours, {}),
            (default, {}),
            ("edskypmxt", {}),
            (documented[0], penalties),
            (documented[1], penalties),
            ("kfypmt", penalties),
            ([], off),
            ("", off),
            (["top_k"], {**off, "top_k": 7}),
            ("t", {**off, "temperature": 0.5}),
            (ours[:-1], {"temperature": 1}),
        ):
            used = self.post(LLAMA, {"prompt": "x", **given, "samplers": samplers}).json["generation_settings"]
            self.assertEqual({k: used[k] for k in given}, {**given, **changed}, samplers)
        for samplers in (ours[::-1], ["temperature", "top_k"], [*ours, "top_k"], [*ours, "infill"], [*ours, 1], "kpme", "kk", "kz", {}, 5):
            self.assertIn("'samplers' must be", self.post(LLAMA, {"prompt": "x", "samplers": samplers}, 400).json["error"]["message"])

    def test_bias_forms(self):
        for bias in ([[10, 1.5]], [[10, False]], [["hello", -2]], {"10": 3}, {"hello": -2, "10": False, "1e": 1}):
            self.post(LLAMA, {"prompt": "x", "logit_bias": bias})

    def test_tokenize(self):
        self.assertEqual(self.post("/tokenize", {"content": "hello world!"}).json, {"tokens": [260, 261, 33]})
        self.assertEqual(self.post("/tokenize", {"content": "a", "add_special": True}).json, {"tokens": [256, 97]})
        self.assertEqual(self.post("/tokenize", {"content": "</s>", "parse_special": False}).json["tokens"], list(b"</s>"))
        self.assertEqual(self.post("/tokenize", {"content": "</s>"}).json["tokens"], [257])
        for none in ({"content": ""}, {"content": []}, {}):
            self.assertEqual(self.post("/tokenize", none).json, {"tokens": []})
        pieces = self.post("/tokenize", {"content": "aé", "with_pieces": True}).json["tokens"]
        self.assertEqual([p["piece"] for p in pieces], ["a", [0xc3], [0xa9]])

    def test_what_is_tokenized_may_be_longer_than_the_context(self):
        text = "<|assistant|>" * 2100 + "x"
        self.assertEqual(len(self.post("/tokenize", {"content": text}).json["tokens"]), 2101)
        self.assertEqual(len(self.post("/detokenize", {"tokens": [97] * 2100}).json["content"]), 2100)
        self.post(LLAMA, {"prompt": text}, 400)

    def test_detokenize(self):
        self.assertEqual(self.post("/detokenize", {"tokens": [260, 261]}).json, {"content": "hello world", "prompt": "hello world"})
        self.assertEqual(self.post("/detokenize", {"tokens": []}).json, {"content": "", "prompt": ""})

    def test_apply_template(self):
        for more, end in (({}, "<|assistant|>"), ({"add_generation_prompt": True}, "<|assistant|>"), ({"add_generation_prompt": False}, "")):
            self.assertEqual(self.post("/apply-template", {"messages": user("hi"), **more}).json, {"prompt": "<|user|>hi" + end})

    def test_an_answer_that_has_begun_goes_on(self):
        """Where the last message is the assistant's, its answer goes on from there, as llama.cpp and others have it."""
        begun = user("hi") + [{"role": "assistant", "content": "Good"}]
        for more in ({}, {"add_generation_prompt": True}, {"add_generation_prompt": False}):
            self.assertEqual(self.post("/apply-template", {"messages": begun, **more}).json, {"prompt": "<|user|>hi<|assistant|>Good"})
        called = user("hi") + [{"role": "assistant", "content": "Good", "function_call": {"name": "f", "arguments": "{}"}}]  # has ended
        self.assertEqual(self.post("/apply-template", {"messages": called}).json, {"prompt": "<|user|>hi<|assistant|>Good<|assistant|>"})
        self.assertEqual(self.post("/apply-template", {"messages": begun + user("x")}).json, {"prompt": "<|user|>hi<|assistant|>Good<|user|>x<|assistant|>"})
        tokens = [self.post(CHAT, {"messages": m}).json["usage"]["prompt_tokens"] for m in (user("hi"), begun)]
        self.assertEqual(tokens[1] - tokens[0], 4)

    def test_embedding(self):
        for path in ("/embedding", "/embeddings"):
            a = self.post(path, {"content": "a"}).json
            self.assertEqual((a[0]["index"], a[0]["embedding"][0][:3]), (0, [-0.5, 0, 0.75]))

    def test_health_and_props(self):
        self.assertEqual(self.server.get("/health").json, {"status": "ok"})
        props = self.server.get("/props").json
        self.assertEqual((props["total_slots"], props["default_generation_settings"]["n_ctx"]), (8, 2048))
        with open(os.path.join(ROOT, "docs", "openapi.json")) as f:
            fields = json.load(f)["components"]["schemas"]["CompletionRequest"]["properties"]
        for name, value in props["default_generation_settings"]["params"].items():
            if "default" in fields[name] and name != "stream":
                self.assertEqual(value, fields[name]["default"], name)

    def test_slots(self):
        self.post(LLAMA, {"prompt": "[say abc]", "id_slot": 3})
        slots = self.server.get("/slots").json
        self.assertEqual((len(slots), slots[3]["n_tokens"], slots[3]["is_processing"]), (8, 13, False))
        a = self.post("/slots/3?action=save", {"filename": "talk.bin"}).json
        self.assertEqual((a["id_slot"], a["filename"], a["n_saved"], a["n_written"]), (3, "talk.bin", 13, 1300))
        self.assertEqual(self.post("/slots/3?action=erase", None).json, {"id_slot": 3, "n_erased": 13})
        self.assertEqual(self.post("/slots/3?action=save", {"filename": "x"}, 400).json["error"]["message"], "slot 3 holds nothing of yours to save")
        a = self.post("/slots/5?action=restore", {"filename": "talk.bin"}).json
        self.assertEqual((a["n_restored"], a["n_read"]), (13, 1300))
        self.assertEqual(self.server.get("/slots").json[5]["n_tokens"], 13)
        self.assertEqual(self.post("/slots/5?action=save", {"filename": "again"}).json["n_saved"], 13)  # no request ran in it
        self.post("/slots/5?action=restore", {"filename": "never"}, 404)
        self.assertEqual(self.post("/slots/5?action=erase", {"filename": "talk.bin"}).json, {"id_slot": 5, "filename": "talk.bin", "n_erased": 0})
        for action in ("restore", "erase"):
            self.post("/slots/5?action=" + action, {"filename": "talk.bin"}, 404)
        self.assertIn("'filename' is missing", self.post("/slots/5?action=save", {}, 400).json["error"]["message"])
        self.assertEqual(self.server.get("/slots?fail_on_no_slot=1").status, 200)

    def test_no_idle_slot(self):
        server = self.own()
        with server.connect() as s:
            s.sendall(request({"prompt": "[delay 20][loop a]", "n_predict": 2000, "n": 8, "stream": True}, LLAMA))
            server.wait_metric("weft_running", 8)
            wait_until(lambda: server.get("/slots?fail_on_no_slot=1").status == 503, 0.02)
            self.assertEqual((server.get("/slots?fail_on_no_slot=1").status, server.get("/slots").status), (503, 200))

    def test_random_seeds(self):
        """What llama.cpp's clients send for none is none."""
        for seed in (-1, -2, -2 ** 63, 4294967295):
            seeds = {self.post(LLAMA, {"prompt": "[say x]", "seed": seed}).json["generation_settings"]["seed"] for _ in range(2)}
            self.assertEqual(len(seeds - {seed}), 2)
            self.assertLess(max(seeds), 2 ** 32)  # as llama.cpp's are
        self.assertEqual(self.post(LLAMA, {"prompt": "[say x]", "seed": 4294967294}).json["generation_settings"]["seed"], 4294967294)

    def test_prompts_count_once(self):
        for n in (1, 4):
            before = self.server.metric("weft_prompt_tokens_total")
            usage = self.post(TEXT, {"prompt": ["[say abc]", "[say de]"], "n": n}).json["usage"]
            self.assertEqual(self.server.metric("weft_prompt_tokens_total") - before, usage["prompt_tokens"])

    def test_others_take_the_slot_used_least_recently(self):
        """What somebody left in a slot, to be saved, is not written over by the next request of anybody."""
        server = self.own()
        n = server.get("/props").json["total_slots"]
        mine = server.post(LLAMA, {"prompt": "[say mine]", "id_slot": 0}).json
        n_mine = mine["tokens_evaluated"] + mine["tokens_predicted"]
        self.assertEqual([server.post(LLAMA, {"prompt": "[say x]"}).json["id_slot"] for _ in range(n - 1)], list(range(1, n)))
        self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}).json["n_saved"], n_mine)
        self.assertEqual(server.post("/slots/4?action=restore", {"filename": "mine"}).json["n_restored"], n_mine)
        server.post("/slots/6?action=erase", None)
        self.assertEqual([server.post(LLAMA, {"prompt": "[say x]"}).json["id_slot"] for _ in range(n)], [6, 0, 1, 2, 3, 5, 7, 4])

    def test_slots_that_are_busy(self):
        with self.server.connect() as s:
            s.sendall(request({"prompt": "[delay 50][loop a]", "n_predict": 2000, "id_slot": 6, "stream": True}, LLAMA))
            got = b""
            while b"data: " not in got:  # the head may come before it runs
                got += s.recv(1000)
            for action in ("save", "restore", "erase"):
                a = self.post("/slots/6?action=" + action, {} if action == "erase" else {"filename": "busy"}, 409)
                self.assertEqual(a.json["error"]["message"], "slot 6 is running a request")
        self.assertEqual(self.server.wait_metric("weft_running", 0), 0)

    def test_slots_without_keys(self):
        """`user` shares out time, not slots: without keys anybody may save, restore and erase any."""
        n = self.post(TEXT, {"prompt": "[say abc]", "user": "alice"}).json["usage"]["total_tokens"]
        at = max(self.server.get("/slots").json, key=lambda slot: slot["id_task"])
        self.assertEqual(at["n_tokens"], n)
        self.assertEqual(self.post("/slots/%d?action=save" % at["id"], {"filename": "alices"}).json["n_saved"], n)
        self.assertEqual(self.post("/slots/%d?action=restore" % at["id"], {"filename": "alices"}).json["n_restored"], n)
        self.assertEqual(self.post("/slots/%d?action=erase" % at["id"], None).json["n_erased"], n)

    def test_users_that_begin_alike(self):
        """Who is whom is decided by all of `user`."""
        with tempfile.NamedTemporaryFile("r") as log:
            server = self.own("--log", log.name)
            users = ["bob", "x" * 50, "x" * 51, "x" * 256, "x" * 255 + "y"]
            for name in users:
                self.assertEqual(server.post(TEXT, {"prompt": "[say a]", "user": name}).status, 200)
            server.stop()
            tenants = [json.loads(line)["tenant"] for line in log]
        hashed = ["user-sha256:" + hashlib.sha256(name.encode()).hexdigest()[:40] for name in users[2:]]
        self.assertCountEqual(tenants, ["user-bob", "user-" + "x" * 50, *hashed])  # lines come in any order

    def test_a_log_without_room(self):
        """Lines for which there is no room are counted, and told once; when there is room the log goes on with the rest of the line that was begun."""
        with tempfile.NamedTemporaryFile("r") as log:
            server = Server([*FAKE, "--log", log.name], preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
            self.addCleanup(lambda: server.process.stdout.closed or server.stop())
            server.get("/props")
            while not log.read().endswith("\n"):
                time.sleep(0.01)
            limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (os.path.getsize(log.name) + 10, limits[1]))
            for _ in range(3):
                server.get("/props")
            while server.metric("weft_log_lines_lost_total") < 2:
                time.sleep(0.01)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
            server.get("/v1/models")
            status, err = server.stop()
            log.seek(0)
            lines = log.read().splitlines()
        self.assertEqual((status, err.count("a line of the request log is lost")), (0, 1), err)
        self.assertEqual([json.loads(line)["path"] for line in lines[:2]], ["/props"] * 2)
        self.assertIn("/v1/models", [json.loads(line)["path"] for line in lines[2:]])

    def test_slots_show_no_text(self):
        self.post(LLAMA, {"prompt": "[say secret]"})
        self.assertNotIn(b"secret", self.server.get("/slots").body)

    def test_metrics(self):
        before = self.server.metric("weft_generated_tokens_total")
        self.post(LLAMA, {"prompt": "[say abcd]"})
        self.assertEqual(self.server.metric("weft_generated_tokens_total"), before + 4)
        text = self.server.get("/metrics").body.decode()
        names = set()
        for line in text.splitlines():  # the format: comments, or name{labels} value
            self.assertRegex(line, r'^(# (HELP|TYPE) [a-z_:]+ .+|[a-z_:]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? [0-9.e+-]+)$')
            names.add(re.match(r"(?:# \w+ )?([a-z_:]+)", line).group(1))
        for name in (
            "weft_time_to_first_token_seconds_bucket",
            "weft_time_between_tokens_seconds_sum",
            "weft_queue_seconds_count",
            "weft_kv_pages",
            "weft_store_bytes",
            "weft_store_waiting",
            "weft_store_write_failures_total",
            "weft_step_rows_bucket",
            "weft_prefix_hit_tokens_total",
            "llamacpp:tokens_predicted_total",
            "llamacpp:requests_processing",
            "llamacpp:n_busy_slots_per_decode",
        ):
            self.assertIn(name, names)
        for name in (
            "prompt_tokens_total",
            "prompt_seconds_total",
            "tokens_predicted_total",
            "tokens_predicted_seconds_total",
            "n_decode_total",
            "n_tokens_max",
        ):
            self.assertIn("# TYPE llamacpp:%s counter\n" % name, text)  # as llama.cpp has them
        most, fresh = self.server.metric("llamacpp:n_tokens_max"), self.server.metric("llamacpp:prompt_tokens_total")
        a = self.post(LLAMA, {"prompt": "[loop a]" + "x" * int(most), "n_predict": 4}).json
        self.assertEqual(self.server.metric("llamacpp:n_tokens_max"), a["tokens_evaluated"] + 4)
        self.assertEqual(self.server.metric("llamacpp:prompt_tokens_total"), fresh + a["tokens_evaluated"])
        self.post(LLAMA, {"prompt": "[say abcd]"})
        self.assertEqual(self.server.metric("llamacpp:n_tokens_max"), a["tokens_evaluated"] + 4)
        counts = [int(n) for n in re.findall(r'^weft_request_seconds_bucket\{le="[^"]+"\} (\d+)', text, re.M)]
        self.assertEqual(counts, sorted(counts))

    def test_head_and_methods(self):
        c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        c.request("HEAD", "/health")
        r = c.getresponse()
        self.assertEqual((r.status, r.read()), (200, b""))
        c.request("GET", "/v1/models")  # the connection is kept
        self.assertEqual(c.getresponse().status, 200)
        c.close()


def mismatch(schemas, schema, value, at="$"):
    """What of JSON Schema docs/openapi.json uses for answers: where the value is not what the schema says; "" where it is."""
    if "$ref" in schema:
        return mismatch(schemas, schemas[schema["$ref"].rsplit("/", 1)[1]], value, at)
    if "anyOf" in schema:
        found = [mismatch(schemas, s, value, at) for s in schema["anyOf"]]
        return "" if "" in found else found[0]
    kinds = {
        type(None): ["null"],
        bool: ["boolean"],
        int: ["integer", "number"],
        float: ["number"],
        str: ["string"],
        list: ["array"],
        dict: ["object"],
    }[type(value)]
    wanted = schema.get("type", kinds)
    if not set(kinds) & set(wanted if isinstance(wanted, list) else [wanted]):
        return f"{at} is {kinds[0]}, not {wanted}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} is {value!r}"
    if isinstance(value, list):
        return next((m for i, v in enumerate(value) if (m := mismatch(schemas, schema.get("items", {}), v, f"{at}[{i}]"))), "")
    if not isinstance(value, dict):
        return ""
    missing, more = set(schema.get("required", [])) - set(value), schema.get("additionalProperties", True)
    if missing:
        return f"{at} lacks {missing}"
    for name, v in value.items():
        known = name in schema.get("properties", {})
        if not known and more is False:
            return f"{at}.{name} is not in the document"
        m = mismatch(schemas, schema["properties"][name] if known else more if isinstance(more, dict) else {}, v, f"{at}.{name}")
        if m:
            return m
    return ""


class Documents(unittest.TestCase):
    def test_answers(self):
        """Real answers, and refusals, are what docs/openapi.json says."""
        with open(os.path.join(ROOT, "docs", "openapi.json")) as f:
            document = json.load(f)
        schemas = document["components"]["schemas"]
        tool = {"type": "function", "function": {"name": "f"}}
        asks = [
            ("get", path, None)
            for path in (
                "/v1/models",
                "/models",
                "/v1/models/fake",
                "/health",
                "/v1/health",
                "/openapi.json",
                "/props",
                "/slots",
                "/lora-adapters",
            )
        ]
        for path in (CHAT, "/chat/completions"):
            asks += [
                ("post", path, {"messages": user("[say hi]"), **more})
                for more in (
                    {},
                    {"n": 2, "logprobs": True, "top_logprobs": 2},
                    {"max_tokens": 1, "logprobs": True},
                    {"messages": 5},
                    {"messages": user('[say <think>Hm</think>{"name": "f", "arguments": {}}]'), "tools": [tool]},
                    {"messages": user('[say {"name": "f", "arguments": {}}]'), "functions": [tool["function"]]},
                    {"tools": [{}]},
                )
            ]
        asks += [("post", TEXT, {"prompt": "[say hi]", **more}) for more in ({}, {"logprobs": 2, "echo": True}, {"logprobs": 0, "n": 2}, {"prompt": None})]
        asks += [
            ("post", path, {"prompt": "[say hi]", **more})
            for path in (LLAMA, "/completions")
            for more in (
                {},
                {"n_probs": 2, "return_tokens": True},
                {"stop": ["i"], "n_predict": 9},
                {"n": 2},
                {"n": "x"},
            )
        ]
        asks += [
            ("post", "/v1/embeddings", {"input": ["x", "y"]}),
            ("post", "/v1/embeddings", {"input": "x", "encoding_format": "base64"}),
            ("post", "/v1/embeddings", {}),
        ]
        asks += [("post", path, {"content": "x"}) for path in ("/embedding", "/embeddings")]
        asks += [("post", "/tokenize", {"content": "aé", "with_pieces": flag}) for flag in (False, True)] + [
            ("post", "/detokenize", {"tokens": [97]}),
            ("post", "/apply-template", {"messages": user("x")}),
        ]
        asks += [("post", LLAMA, {"prompt": "[say hi]", "id_slot": 0})]
        asks += [
            ("post", "/slots/0?action=" + action, body)
            for action, body in (
                ("save", {"filename": "t"}),
                ("restore", {"filename": "t"}),
                ("erase", {"filename": "t"}),
                ("erase", {}),
                ("save", {}),
            )
        ]
        server = Server([*FAKE, "--template", "<think></think>"])
        try:
            for method, path, body in asks:
                answer = server.ask(method.upper(), path, body)
                plain = path.split("?")[0].replace("/models/fake", "/models/{model}").replace("/slots/0", "/slots/{id_slot}")
                told = document["paths"][plain][method]["responses"]["200" if answer.status == 200 else "default"]["content"]["application/json"]["schema"]
                self.assertNotEqual(told, {"type": "object"}, path)
                self.assertEqual(mismatch(schemas, told, answer.json), "", (path, body, answer.body[:500]))
        finally:
            server.stop()

    def test_the_document_is_valid_and_served(self):
        """To whom has no key, too, and byte for byte. Where openapi-spec-validator is installed, that accepts it; everywhere: what is referred to is
        there, defaults are values that may be given, operations have ids of their own and name the parameters of their paths."""
        with open(os.path.join(ROOT, "docs", "openapi.json"), "rb") as f:
            text = f.read()
        document = json.loads(text)
        server = Server([*FAKE, "--api-key", "key-of-someone"])
        try:
            said = server.get("/openapi.json")
            self.assertEqual((said.status, said.headers["content-type"].split(";")[0], said.body), (200, "application/json", text))
            self.assertEqual(server.get("/props").status, 401)
        finally:
            server.stop()
        faults, ids = [], []

        def walk(value, at):
            if isinstance(value, list):
                for i, v in enumerate(value):
                    walk(v, f"{at}/{i}")
            if not isinstance(value, dict):
                return
            if isinstance(ref := value.get("$ref"), str):
                target = document
                for part in ref.removeprefix("#/").split("/"):
                    target = target.get(part) if isinstance(target, dict) else None
                if not ref.startswith("#/") or target is None:
                    faults.append(f"{at}: {ref} is not there")
            default, kinds = value.get("default"), value.get("type")
            if default is not None and kinds and at.split("/")[-2:-1] == ["properties"]:
                m = mismatch(document["components"]["schemas"], {"type": kinds, **({"enum": value["enum"]} if "enum" in value else {})}, default)
                if (
                    m
                    or not value.get("minimum", -math.inf)
                    <= (default if isinstance(default, (int, float)) else math.inf)
                    <= value.get("maximum", math.inf)
                    and isinstance(default, (int, float))
                ):
                    faults.append(f"{at}: {default!r} cannot be given")
            if missing := set(value.get("required", [])) - set(value.get("properties", {})) if isinstance(value.get("required"), list) else ():
                faults.append(f"{at}: requires {missing}, which it does not describe")
            for key, v in value.items():
                walk(v, f"{at}/{key}")
        walk(document, "#")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                ids.append(operation["operationId"])
                named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path" and p["required"]}
                if (
                    named != set(re.findall(r"{(\w+)}", path))
                    or "responses" not in operation
                    or not all("description" in r for r in operation["responses"].values())
                ):
                    faults.append(f"{method} {path}")
        self.assertEqual(faults, [])
        self.assertEqual(len(ids), len(set(ids)))
        try:
            import openapi_spec_validator
        except ImportError:
            return  # what it would say of this document, the above says
        openapi_spec_validator.validate(document)

    def test_openapi(self):
        """docs/openapi.json says of every field what the tables say."""
        tables = json.loads(subprocess.run([*FAKE, "--fields"], capture_output=True, text=True, check=True).stdout)
        with open(os.path.join(ROOT, "docs", "openapi.json")) as f:
            document = json.load(f)
        for name, table in tables.items():
            operation = document["paths"][table["path"]]["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
            self.assertEqual(set(schema["properties"]), set(table["fields"]), name)
            self.assertEqual(set(schema.get("required", [])), {f for f, v in table["fields"].items() if v["required"]}, name)
            self.assertEqual(schema["additionalProperties"], not table["strict"], name)
            for field, says in table["fields"].items():
                have = schema["properties"][field]
                for key in ("minimum", "maximum", "maxLength", "default"):
                    self.assertEqual(have.get(key), says.get(key), (name, field, key))
                if says["type"] in ("boolean", "integer", "number", "string"):
                    self.assertEqual(have["type"], says["type"], (name, field))
        length = document["components"]["schemas"]["SlotRequest"]["properties"]["filename"]["maxLength"]
        for options, headers in (((), {}), (("--api-key", "key-of-someone"), {"X-Api-Key": "key-of-someone"})):
            server = Server([*FAKE, *options])
            try:
                for n, status in ((length, 404), (length + 1, 400)):
                    self.assertEqual(server.post("/slots/0?action=restore", {"filename": "x" * n}, headers=headers).status, status, (options, n))
            finally:
                server.stop()
        routes = subprocess.run([*FAKE, "--routes"], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(sorted(document["paths"]), sorted(routes))
        server = Server(FAKE)
        try:
            for path, operations in document["paths"].items():
                for method in ("get", "post"):
                    real = path.replace("{model}", "fake").replace("{id_slot}", "0").replace("{file}", "app.js")
                    status = server.ask(method.upper(), real, b"{}" if method == "post" else None).status
                    self.assertEqual(status == 405, method not in operations, (path, method))
                    self.assertNotEqual(status, 404, path)
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main(verbosity=1)
