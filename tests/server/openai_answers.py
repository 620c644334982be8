# SPDX-License-Identifier: Apache-2.0
"""Of OpenAI's dialect: what an answer has, whole and in a stream: lengths, seeds, log-probabilities, prompts in every form, embeddings."""
import base64
import json
import struct
import time

from servers import CHAT, LLAMA, TEXT, request, user


class Answers:
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

    def test_embeddings_of_another_kind(self):
        """`pooling` reaches the engine, as which the fake one answers: as the model's file says, mean, last. `instruction` stands before each text."""
        for path, text in (("/v1/embeddings", "input"), ("/embedding", "content")):
            def embed(**body):
                a = self.post(path, body).json
                return [d["embedding"] for d in a["data"]] if "data" in a else [d["embedding"][0] for d in a]
            for pooling, first in ((None, -0.5), ("mean", -1), ("last", -1.5)):
                self.assertEqual(embed(**{text: "a", "pooling": pooling})[0][:3], [first, 0, 0.75])
            spelled = embed(**{text: ["Instruct: find it\nQuery:a", "Instruct: find it\nQuery:bcd"]})
            self.assertEqual(embed(**{text: ["a", "bcd"], "instruction": "find it"}), spelled)
            self.assertNotEqual(embed(**{text: ["a", "bcd"]}), spelled)
        asked = {"input": ["a", "bcd"], "instruction": "find it"}
        self.assertEqual(self.post("/v1/embeddings", asked).json["usage"]["prompt_tokens"], 6 + 2 * len("Instruct: find it\nQuery:"))

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
