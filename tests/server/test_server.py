"""Claims about the server over a scripted model (fake_engine.c): answers in both dialects, errors that name the field, hostile heads
and bodies, clients that leave or do not read, and ending in order.

usage: test_server.py build/fake_server"""
import base64
import http.client
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

FAKE = os.environ.get("WEFT_EMULATOR", "").split() + [os.path.abspath(sys.argv.pop(1))]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLOWER = 10 if os.environ.get("WEFT_EMULATOR") else 1
CHAT, TEXT, LLAMA = "/v1/chat/completions", "/v1/completions", "/completion"


def user(text):
    return [{"role": "user", "content": text}]


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        """The data of each event of a stream; "[DONE]" stays text."""
        out = []
        for line in self.body.decode().split("\n\n"):
            if line.startswith("data: "):
                out.append(line[6:] if line[6:] == "[DONE]" else json.loads(line[6:]))
        return out


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([*FAKE, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError(self.process.communicate()[1])
        self.port = int(self.address.rsplit(":", 1)[1]) if self.address.startswith("http") else 0

    def connect(self, timeout=20 * SLOWER):
        if self.port:
            return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        s.connect(self.address[len("unix:"):])
        return s

    def ask(self, method, path, body=None, headers=None, timeout=30 * SLOWER):
        c = http.client.HTTPConnection("127.0.0.1", self.port or 80, timeout=timeout)
        c.sock = self.connect(timeout)
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        c.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        r = c.getresponse()
        answer = Answer(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
        c.close()
        return answer

    def post(self, path, body, **more):
        return self.ask("POST", path, body, **more)

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def raw(self, data, wait=1.5):
        """Everything that comes back for these bytes until the server closes, or nothing comes for a while."""
        out = b""
        with self.connect() as s:
            try:
                s.sendall(data)
            except OSError:
                pass  # refused before all was sent
            s.settimeout(wait * SLOWER)
            try:
                while True:
                    got = s.recv(65536)
                    if not got:
                        break
                    out += got
            except (TimeoutError, ConnectionError):
                pass
        return out

    def metric(self, name):
        found = re.search(r"^%s (\S+)$" % re.escape(name), self.get("/metrics").body.decode(), re.M)
        return float(found.group(1))

    def wait_metric(self, name, want, seconds=5):
        until = time.time() + seconds * SLOWER
        while self.metric(name) != want and time.time() < until:
            time.sleep(0.02)
        return self.metric(name)

    def stop(self, wait=20):
        """Exit status and what stood on stderr."""
        self.process.send_signal(signal.SIGTERM)
        try:
            _, err = self.process.communicate(timeout=wait * SLOWER)
        finally:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, err


class Case(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)

    @classmethod
    def tearDownClass(cls):
        status, err = cls.server.stop()
        assert status == 0, err  # 3: memory was not freed

    def post(self, path, body, status=200, **more):
        answer = self.server.post(path, body, **more)
        self.assertEqual(answer.status, status, answer.body)
        return answer

    def own(self, *options):
        server = Server(*options)
        self.addCleanup(lambda: server.process.poll() is None and server.stop())
        return server


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
        for body in ({"max_tokens": 3}, {"max_completion_tokens": 3}):
            a = self.post(CHAT, {"messages": user("[loop ab]"), **body}).json
            self.assertEqual((a["choices"][0]["message"]["content"], a["choices"][0]["finish_reason"]), ("aba", "length"))

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

    def test_stop_is_held_back(self):
        """Nothing that may belong to a stop string is sent before it is known."""
        e = self.post(TEXT, {"prompt": "[say one STOX two STOP three]", "stop": "STOP", "stream": True, "max_tokens": 100}).events
        texts = [c["choices"][0]["text"] for c in e[:-1]]
        self.assertEqual("".join(texts), "one STOX two ")
        self.assertIn("STOX", texts)

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
        coded = self.post("/v1/embeddings", {"input": "a", "encoding_format": "base64"}).json["data"][0]["embedding"]
        self.assertEqual(list(struct.unpack("<16f", base64.b64decode(coded))), a["data"][0]["embedding"])

    def test_special_tokens_in_messages_stay_text(self):
        plain = self.post(CHAT, {"messages": user("x")}).json["usage"]["prompt_tokens"]
        spelled = self.post(CHAT, {"messages": user("</s>")}).json["usage"]["prompt_tokens"]
        self.assertEqual(spelled - plain, 3)

    def test_json_object_and_grammar(self):
        self.post(CHAT, {"messages": user("x"), "response_format": {"type": "json_object"}})
        self.post(TEXT, {"prompt": "x", "grammar": "root ::= \"a\""})

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
        self.assertIn("deadline", a.json["error"]["message"])

    def test_notes_without_effect(self):
        self.post(CHAT, {"messages": user("x"), "store": True, "metadata": {"a": "b"}, "service_tier": "auto", "tools": [], "tool_choice": "none",
                         "parallel_tool_calls": True, "stop": None, "temperature": None, "user": "me"})


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
        a = self.post(LLAMA, {"prompt": "[say one two]", "stop": ["tw"]}).json
        self.assertEqual((a["content"], a["stop_type"], a["stopping_word"]), ("one ", "word", "tw"))

    def test_stream(self):
        e = self.post(LLAMA, {"prompt": "[say xyz]", "stream": True, "timings_per_token": True}).events
        self.assertEqual([(c["content"], c["stop"]) for c in e], [("x", False), ("y", False), ("z", False), ("", True)])
        self.assertEqual((e[-1]["tokens_predicted"], e[-1]["stop_type"]), (3, "eos"))
        self.assertIn("timings", e[0])

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
        self.post(LLAMA, {"prompt": "x", "brand_new": {"a": 1}, "samplers": ["top_k"]})

    def test_bias_forms(self):
        for bias in ([[10, 1.5]], [[10, False]], [["hello", -2]], {"10": 3}):
            self.post(LLAMA, {"prompt": "x", "logit_bias": bias})

    def test_tokenize(self):
        self.assertEqual(self.post("/tokenize", {"content": "hello world!"}).json, {"tokens": [260, 261, 33]})
        self.assertEqual(self.post("/tokenize", {"content": "a", "add_special": True}).json, {"tokens": [256, 97]})
        self.assertEqual(self.post("/tokenize", {"content": "</s>", "parse_special": False}).json["tokens"], list(b"</s>"))
        self.assertEqual(self.post("/tokenize", {"content": "</s>"}).json["tokens"], [257])
        self.assertEqual(self.post("/tokenize", {"content": ""}).json["tokens"], [])
        pieces = self.post("/tokenize", {"content": "aé", "with_pieces": True}).json["tokens"]
        self.assertEqual([p["piece"] for p in pieces], ["a", [0xc3], [0xa9]])

    def test_detokenize(self):
        self.assertEqual(self.post("/detokenize", {"tokens": [260, 261]}).json, {"content": "hello world"})
        self.assertEqual(self.post("/detokenize", {"tokens": []}).json, {"content": ""})

    def test_apply_template(self):
        self.assertEqual(self.post("/apply-template", {"messages": user("hi")}).json, {"prompt": "<|user|>hi<|assistant|>"})

    def test_embedding(self):
        for path in ("/embedding", "/embeddings"):
            a = self.post(path, {"content": "a"}).json
            self.assertEqual((a[0]["index"], a[0]["embedding"][0][:3]), (0, [-0.5, 0, 0.75]))

    def test_health_and_props(self):
        self.assertEqual(self.server.get("/health").json, {"status": "ok"})
        props = self.server.get("/props").json
        self.assertEqual((props["total_slots"], props["default_generation_settings"]["n_ctx"]), (8, 2048))

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
        self.post("/slots/5?action=restore", {"filename": "never"}, 404)

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
        for name in ("weft_time_to_first_token_seconds_bucket", "weft_time_between_tokens_seconds_sum", "weft_queue_seconds_count", "weft_kv_pages",
                     "weft_step_rows_bucket", "weft_prefix_hit_tokens_total", "llamacpp:tokens_predicted_total", "llamacpp:requests_processing"):
            self.assertIn(name, names)
        counts = [int(n) for n in re.findall(r'^weft_request_seconds_bucket\{le="[^"]+"\} (\d+)', text, re.M)]
        self.assertEqual(counts, sorted(counts))

    def test_head_and_methods(self):
        c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        c.request("HEAD", "/health")
        r = c.getresponse()
        self.assertEqual((r.status, r.read()), (200, b""))
        c.request("GET", "/v1/models")  # the connection is kept
        self.assertEqual(c.getresponse().status, 200)
        c.close()


DEEP = b"[" * 100000 + b"]" * 100000
NESTED = b'{"prompt":"x","a":' + b"[" * 300 + b"]" * 300 + b"}"
BIG = "s" * 10_000_000
LONG = [9] * 5000


def bad_requests():
    """(path, body, status, words of the message, field or None)"""
    m = {"messages": user("x")}
    p = {"prompt": "x"}

    def each(path, base, *cases):
        return [(path, {**base, **body}, status, words, field) for body, status, words, field in cases]

    shared = [  # of both OpenAI forms
        ({"temperature": -0.1}, 400, "must be from 0 to 2, not -0.1", "temperature"), ({"temperature": 2.01}, 400, "from 0 to 2", "temperature"),
        ({"temperature": "hot"}, 400, "must be a number, not a string", "temperature"), ({"temperature": [1]}, 400, "not an array", "temperature"),
        ({"temperature": True}, 400, "not a boolean", "temperature"), ({"top_p": 1.5}, 400, "from 0 to 1", "top_p"), ({"top_p": -1}, 400, "from 0 to 1", "top_p"),
        ({"n": 0}, 400, "from 1 to 128", "n"), ({"n": -5}, 400, "from 1 to 128", "n"), ({"n": 1000000000}, 400, "from 1 to 128", "n"),
        ({"n": 2.5}, 400, "must be an integer, not a number", "n"), ({"n": "3"}, 400, "not a string", "n"), ({"n": 129}, 400, "128, not 129", "n"),
        ({"presence_penalty": 3}, 400, "from -2 to 2", "presence_penalty"), ({"presence_penalty": {}}, 400, "not an object", "presence_penalty"),
        ({"frequency_penalty": -2.5}, 400, "from -2 to 2", "frequency_penalty"), ({"frequency_penalty": "0"}, 400, "a number", "frequency_penalty"),
        ({"seed": 1.5}, 400, "an integer", "seed"), ({"seed": "x"}, 400, "an integer", "seed"),
        ({"stream": 1}, 400, "must be a boolean, not an integer", "stream"), ({"stream": "true"}, 400, "a boolean", "stream"),
        ({"stream_options": {}}, 400, "only allowed when 'stream' is true", "stream_options"),
        ({"stream": True, "stream_options": []}, 400, "must be an object", "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, 400, "must be a boolean", "stream_options"),
        ({"stream": True, "stream_options": {"usage": True}}, 400, "stream_options.usage", "stream_options"),
        ({"stop": 5}, 400, "must be a string or an array", "stop"), ({"stop": [1]}, 400, "a string or an array", "stop"),
        ({"stop": ["a"] * 17}, 400, "at most 16", "stop"), ({"stop": "x" * 1001}, 400, "at most 1000 bytes, not 1001", "stop"),
        ({"stop": {"a": 1}}, 400, "a string or an array", "stop"),
        ({"logit_bias": {"10": 101}}, 400, "from -100 to 100, not 101 for token 10", "logit_bias"), ({"logit_bias": {"10": -1e9}}, 400, "-100 to 100", "logit_bias"),
        ({"logit_bias": {"300": 1}}, 400, "from 0 to 299 as keys, not '300'", "logit_bias"), ({"logit_bias": {"-1": 1}}, 400, "as keys", "logit_bias"),
        ({"logit_bias": {"99999999999999999999": 1}}, 400, "as keys", "logit_bias"), ({"logit_bias": {"1": "x"}}, 400, "numbers as values", "logit_bias"),
        ({"logit_bias": {"1": False}}, 400, "numbers as values", "logit_bias"), ({"logit_bias": [[1, 2]]}, 400, "must be an object", "logit_bias"),
        ({"logit_bias": {"hello": 1}}, 400, "not 'hello'", "logit_bias"), ({"logit_bias": {str(i): 0 for i in range(2049)}}, 400, "at most 2048", "logit_bias"),
        ({"response_format": "json"}, 400, "'type': text or json_object", "response_format"), ({"response_format": {"type": "xml"}}, 400, "not 'xml'", "response_format"),
        ({"response_format": {"type": "json_schema"}}, 400, "not supported", "response_format"), ({"response_format": {}}, 400, "'type'", "response_format"),
        ({"response_format": {"type": "json_object"}, "grammar": "root ::= x"}, 400, "exclude each other", "grammar"),
        ({"grammar": "x"}, 400, "there is no rule 'root'", "grammar"), ({"grammar": 1}, 400, "must be a string", "grammar"),
        ({"grammar": "r" * 300000}, 400, "at most 262144 bytes", "grammar"), ({"grammar": "root\0"}, 400, "NUL", "grammar"),
        ({"top_k": -1}, 400, "from 0", "top_k"), ({"min_p": 1.1}, 400, "from 0 to 1", "min_p"), ({"repetition_penalty": 0}, 400, "from 0.01", "repetition_penalty"),
        ({"priority": 1}, 400, "from -8 to 0", "priority"), ({"timeout_ms": -1}, 400, "from 0", "timeout_ms"), ({"user": 5}, 400, "must be a string", "user"),
        ({"user": "u" * 300}, 400, "at most 256 bytes", "user"), ({"model": "gpt-9"}, 404, "the model 'gpt-9' does not exist; this server has 'fake'", "model"),
        ({"model": ["fake"]}, 400, "must be a string", "model"), ({"tempature": 1}, 400, "Unrecognized request argument supplied: tempature", "tempature"),
        ({"x" * 500: 1}, 400, "Unrecognized request argument supplied: xxx", None), ({"ignore_eos": 0}, 400, "a boolean", "ignore_eos"),
    ]
    cases = each(CHAT, m, *shared) + each(TEXT, p, *shared)
    cases += each(CHAT, m, ({"max_tokens": 0}, 400, "from 1", "max_tokens"), ({"max_tokens": -5}, 400, "from 1", "max_tokens"),
                  ({"max_tokens": 1e300}, 400, "must be an integer", "max_tokens"), ({"max_completion_tokens": "9"}, 400, "an integer", "max_completion_tokens"),
                  ({"logprobs": 3}, 400, "must be a boolean", "logprobs"), ({"top_logprobs": 2}, 400, "only allowed when 'logprobs'", "top_logprobs"),
                  ({"logprobs": True, "top_logprobs": 21}, 400, "from 0 to 20", "top_logprobs"),
                  ({"tools": [{"type": "function"}]}, 400, "'tools' is not supported", "tools"), ({"functions": [{}]}, 400, "not supported", "functions"),
                  ({"tool_choice": "required"}, 400, "other than none", "tool_choice"), ({"modalities": ["audio"]}, 400, "[\"text\"]", "modalities"),
                  ({"audio": {"voice": "x"}}, 400, "not supported", "audio"), ({"chat_template_kwargs": []}, 400, "must be an object", "chat_template_kwargs"))
    for messages, words, field in (
            ("hi", "must be an array of messages", "messages"), ([], "must not be empty", "messages"), ({}, "an array", "messages"), (None, "is missing", "messages"),
            (["hi"], "'messages[0]' must be an object", "messages[0]"), ([{}], "'messages[0].role' must be a string", "messages[0].role"),
            ([{"role": "root", "content": "x"}], "not 'root'", "messages[0].role"), ([{"role": 1, "content": "x"}], "a string", "messages[0].role"),
            ([{"role": "user"}], "'messages[0].content' is missing", "messages[0].content"), ([{"role": "user", "content": None}], "is missing", "messages[0].content"),
            ([{"role": "user", "content": 5}], "a string or an array of parts", "messages[0].content"),
            (user("x") + [{"role": "user", "content": {"a": 1}}], "a string or an array", "messages[1].content"),
            ([{"role": "user", "content": ["x"]}], "'messages[0].content[0]' must be an object", "messages[0].content[0]"),
            ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}], "'image_url' is not supported", "messages[0].content[0]"),
            ([{"role": "user", "content": [{"type": "text"}]}], ".text' must be a string", "messages[0].content[0]"),
            ([{"role": "function", "content": "x"}], "no role 'function'", "messages"), (user("x") * 16385, "at most 16384", "messages"),
            (user("y" * 400000), "context holds 2048 tokens", "messages")):
        cases.append((CHAT, {"messages": messages}, 400, words, field))
    cases.append((CHAT, {"messages": user("y" * 3000)}, 400, "the prompt has 3002 tokens", None))
    for prompt, words, field in (
            (None, "is missing", "prompt"), (5, "must be a string", "prompt"), ({}, "must be a string", "prompt"), ([], "must not be empty", "prompt"),
            ([300], "'prompt[0]' must be a token id from 0 to 299", "prompt[0]"), ([1, -1], "prompt[1]", "prompt[1]"), ([1, 2.5], "prompt[1]", "prompt[1]"),
            ([1, "a"], "'prompt[1]' must be a token id", "prompt[1]"), ([True], "must be a string or an array of token ids", "prompt[0]"),
            ([[1], [999]], "from 0 to 299", "prompt[1][0]"), ([["a"]], "must be a token id", "prompt[0][0]"), (["x"] * 129, "at most 128 prompts", "prompt"),
            (["x"] * 65, "at most 128, not 130", "n"), ([[]], "the prompt has no tokens", "prompt"), (LONG, "context holds 2048", "prompt"),
            ("z" * 3000, "the prompt has 3001 tokens", None)):
        cases.append((TEXT, {"prompt": prompt, "n": 2}, 400, words, field))
    cases += each(TEXT, p, ({"max_tokens": -1}, 400, "from 0", "max_tokens"), ({"logprobs": 6}, 400, "from 0 to 5", "logprobs"), ({"logprobs": True}, 400, "an integer", "logprobs"),
                  ({"echo": "yes"}, 400, "a boolean", "echo"), ({"suffix": "abc"}, 400, "not supported", "suffix"), ({"best_of": 4}, 400, "other than 1", "best_of"))
    cases += [("/v1/embeddings", body, 400, words, field) for body, words, field in (
        ({}, "'input' is missing", "input"), ({"input": ""}, None, None), ({"input": 7}, "must be a string", "input"), ({"input": "x", "dimensions": 4}, "not supported", "dimensions"),
        ({"input": "x", "encoding_format": "hex"}, "'float' or 'base64'", "encoding_format"), ({"input": "x", "encoding_format": 1}, "'float'", "encoding_format"),
        ({"input": "x", "n": 2}, "Unrecognized", "n"), ({"input": "w" * 5000}, "the prompt has 5001 tokens", None)) if words]
    llama = [
        ({"n_predict": -2}, "'n_predict' must be from -1"), ({"n_predict": "x"}, "'n_predict' must be an integer"), ({"temperature": -1}, "'temperature'"), ({"top_k": 1.5}, "'top_k'"),
        ({"top_p": 2}, "'top_p'"), ({"min_p": "a"}, "'min_p'"), ({"repeat_penalty": 0}, "'repeat_penalty'"), ({"repeat_last_n": -2}, "'repeat_last_n'"), ({"n_probs": 21}, "'n_probs'"),
        ({"seed": -2}, "'seed'"), ({"mirostat": 2}, "'mirostat' other than 0 is not supported"), ({"typical_p": 0.5}, "'typical_p' other than 1"), ({"lora": [{"id": 0}]}, "'lora[0]' must be"),
        ({"json_schema": {"type": "object"}}, "'json_schema' is not supported"), ({"dry_multiplier": 0.8}, "'dry_multiplier'"), ({"xtc_probability": "x"}, "'xtc_probability' must be a number"),
        ({"logit_bias": 5}, "'logit_bias'"), ({"logit_bias": [[300, 1]]}, "'logit_bias' must have token ids from 0 to 299"), ({"logit_bias": [[1]]}, "[token, number]"),
        ({"logit_bias": [[1, 20000]]}, "from -10000 to 10000"), ({"logit_bias": [["w" * 1001, 1]]}, "at most 1000 bytes"), ({"logit_bias": [[1, True]]}, "numbers as values"),
        ({"id_slot": 70000}, "'id_slot'"), ({"cache_prompt": 1}, "'cache_prompt'"), ({"post_sampling_probs": True}, "'post_sampling_probs'"), ({"prompt": [1, {}]}, "'prompt[1]'")]
    cases += [(LLAMA, {**p, **body}, 400, words, None) for body, words in llama]
    cases += [("/tokenize", {}, 400, "'content' is missing", None), ("/tokenize", {"content": 5}, 400, "'content' must be a string", None), ("/tokenize", {"content": "a", "add_special": 2}, 400, "'add_special'", None),
              ("/detokenize", {}, 400, "'tokens' is missing", None), ("/detokenize", {"tokens": "a"}, 400, "'tokens' must be an array", None), ("/detokenize", {"tokens": [300]}, 400, "'tokens[0]'", None),
              ("/apply-template", {}, 400, "'messages' is missing", None), ("/embedding", {}, 400, "'content' is missing", None), ("/embedding", {"content": {}}, 400, "'content' must be", None)]
    for name in ("../../etc/passwd", "..", ".", "", "a/b", "a\\b", "/etc/passwd", "x" * 129, "a b", "café", "a\n", "%2e%2e", "a:b", "nul\0l", 5, None):
        cases.append(("/slots/0?action=save", {"filename": name}, 400, "'filename'", None))
        cases.append(("/slots/0?action=restore", {"filename": name}, 400, "'filename'", None))
    for path in ("/slots/8?action=erase", "/slots/-1?action=erase", "/slots/x?action=erase", "/slots/999999999999?action=erase", "/slots/0x1?action=erase"):
        cases.append((path, {}, 400, "'id_slot' must be from 0 to 7", None))
    cases += [("/slots/0?action=", {}, 400, "'action' must be", None), ("/slots/0", {}, 400, "'action' must be", None), ("/slots/0?action=steal", {}, 400, "'action' must be", None)]
    for path in (CHAT, LLAMA):
        for body, words in ((b"", "the body is empty"), (b"{", "not valid JSON"), (b"[]", "must be a JSON object, not an array"), (b"null", "not null"), (b'"x"', "not a string"),
                            (b"{} {}", "not valid JSON"), (b'{"prompt":"x","prompt":"y"}', "not valid JSON"), (b'{"prompt":"\xff\xfe"}', "not valid JSON"), (b'{"a":1e999}', "not valid JSON"),
                            (b'{"prompt":"\\ud800"}', "not valid JSON"), (b"{'prompt':'x'}", "not valid JSON"), (b'{"temperature":NaN}', "not valid JSON"), (b'{"n":99999999999999999999}', "not valid JSON"),
                            (DEEP, "not valid JSON"), (NESTED, "not valid JSON"), (b'{"a\\u0000b":1}', "not valid JSON"), (b"\xef\xbb\xbf{}", "not valid JSON"), (b"\0\0\0\0", "not valid JSON")):
            cases.append((path, body, 400, words, None))
    return cases


class Refusals(Case):
    options = ("--body", 4 << 20, "--head", 16384, "--headers", 50)

    def check_shape(self, path, answer, field):
        error = answer.json["error"]
        if path.startswith("/v1/"):
            self.assertEqual(set(error), {"message", "type", "param", "code"})
            if field:
                self.assertEqual(error["param"], field)
        else:
            self.assertGreaterEqual(set(error), {"message", "type", "code"})
            self.assertEqual(error["code"], answer.status)
        return error["message"]

    def test_bad_requests(self):
        """Each is refused with its own status and a message that names the field; and the server lives on."""
        cases = bad_requests()
        self.assertGreaterEqual(len(cases), 120)
        for path, body, status, words, field in cases:
            with self.subTest(path=path, body=repr(body)[:80]):
                answer = self.server.post(path, body)
                self.assertEqual(answer.status, status, answer.body[:300])
                self.assertIn(words, self.check_shape(path, answer, field))
        self.assertEqual(self.server.post(TEXT, {"prompt": "[say ok]"}).json["choices"][0]["text"], "ok")
        self.assertEqual(self.server.metric("weft_running"), 0)

    def test_context_size_errors(self):
        e = self.server.post(LLAMA, {"prompt": "z" * 3000}).json["error"]
        self.assertEqual((e["type"], e["n_prompt_tokens"], e["n_ctx"]), ("exceed_context_size_error", 3001, 2048))
        self.assertEqual(self.server.post(TEXT, {"prompt": "z" * 3000}).json["error"]["code"], "context_length_exceeded")

    def test_paths_and_methods(self):
        for method, path, status in (("GET", "/", 404), ("GET", "/v1/nope", 404), ("GET", CHAT, 405), ("POST", "/v1/models", 405), ("DELETE", "/v1/models/fake", 405), ("PUT", CHAT, 405),
                                     ("PATCH", CHAT, 405), ("GET", "/slots/", 404), ("OPTIONS", CHAT, 405), ("GET", "/v1/models/", 404), ("GET", "/../etc/passwd", 404), ("GET", "//", 404),
                                     ("GET", "/v1/models%00x", 400), ("GET", "/health%0a", 400), ("TRACE", "/health", 405)):
            with self.subTest(method=method, path=path):
                answer = self.server.ask(method, path, b"" if method == "POST" else None)
                self.assertEqual(answer.status, status, answer.body)
                self.check_shape(path, answer, None)
                self.assertEqual("allow" in answer.headers, status == 405)

    def test_body_too_long(self):
        answer = self.server.post(TEXT, {"prompt": "x", "stop": BIG})  # 10 MB
        self.assertEqual((answer.status, answer.json["error"]["code"]), (413, "request_too_large"))
        chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        out = self.server.raw(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 6 + b"0\r\n\r\n")
        self.assertTrue(out.startswith(b"HTTP/1.1 413 "), out[:100])
        out = self.server.raw(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx")
        self.assertTrue(out.startswith(b"HTTP/1.1 413 "), out[:100])

    def test_bad_heads(self):
        """Heads that a proxy might read otherwise, floods, and rubbish: one refusal, and the connection is closed."""
        def post(head, body=b"{}"):
            return b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n" + body
        get = b"GET /health HTTP/1.1\r\n"
        smuggled = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        cases = {
            "CL and TE": (post(b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + smuggled), (400,)),
            "TE and CL": (post(b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled), (400,)),
            "two CL": (post(b"Content-Length: 2\r\nContent-Length: 40", b"{}" + smuggled), (400,)),
            "two equal CL": (post(b"Content-Length: 2\r\nContent-Length: 2", b"{}" + smuggled), (400,)),
            "CL list": (post(b"Content-Length: 2, 2", b"{}" + smuggled), (400,)),
            "CL +2": (post(b"Content-Length: +2", b"{}" + smuggled), (400,)),
            "CL -1": (post(b"Content-Length: -1", b"{}" + smuggled), (400,)),
            "CL hex": (post(b"Content-Length: 0x2", b"{}" + smuggled), (400,)),
            "CL huge": (post(b"Content-Length: 99999999999999999999999", b"{}"), (400, 413)),
            "CL empty": (post(b"Content-Length:", b"{}" + smuggled), (400,)),
            "CL behind bare LF": (post(b"X: y\nContent-Length: 2\r\nContent-Length: 40", b"{}" + smuggled), (400,)),
            "TE behind bare LF": (post(b"X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled), (400,)),
            "TE behind bare CR": (post(b"X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled), (400,)),
            "TE gzip": (post(b"Transfer-Encoding: gzip", b"x"), (400, 501)),
            "TE chunked twice": (post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + smuggled), (400,)),
            "TE xchunked": (post(b"Transfer-Encoding: xchunked", b"0\r\n\r\n" + smuggled), (400, 501)),
            "TE chunked, identity": (post(b"Transfer-Encoding: chunked, identity", b"0\r\n\r\n" + smuggled), (400, 501)),
            "space before colon": (post(b"Content-Length : 2", b"{}" + smuggled), (400,)),
            "name with a space": (post(b"Bad Name: x\r\nContent-Length: 2"), (400,)),
            "no colon": (post(b"rubbish\r\nContent-Length: 2"), (400,)),
            "control in a value": (post(b"X: a\x01b\r\nContent-Length: 2"), (400,)),
            "compressed": (post(b"Content-Encoding: gzip\r\nContent-Length: 2"), (415,)),
            "body of a GET": (get + b"Host: localhost\r\nContent-Length: 5\r\n\r\nhello" + smuggled, (400,)),
            "chunked GET": (get + b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, (400,)),
            "no Host": (get + b"\r\n", (400, 403)),
            "two Hosts": (get + b"Host: localhost\r\nHost: evil.example\r\n\r\n", (400,)),
            "Host with a path": (get + b"Host: localhost/x\r\n\r\n", (400,)),
            "Host with a user": (get + b"Host: localhost@evil.example\r\n\r\n", (400,)),
            "rebinding": (get + b"Host: evil.example\r\n\r\n", (403,)),
            "rebinding with port": (get + b"Host: evil.example:%d\r\n\r\n" % self.server.port, (403,)),
            "rebinding, lookalike": (get + b"Host: localhost.evil.example\r\n\r\n", (403,)),
            "rebinding, 127.": (get + b"Host: 127.evil.example\r\n\r\n", (403,)),
            "rebinding, suffix": (get + b"Host: xlocalhost\r\n\r\n", (403,)),
            "page of another origin": (post(b"Origin: http://evil.example\r\nContent-Length: 2"), (403,)),
            "page of a file": (post(b"Origin: null\r\nContent-Length: 2"), (403,)),
            "many headers": (get + b"Host: localhost\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(60)) + b"\r\n", (431,)),
            "long headers": (get + b"Host: localhost\r\nX: " + b"y" * 20000 + b"\r\n\r\n", (431,)),
            "flood of headers": (get + b"Host: localhost\r\n" + b"X: y\r\n" * 200000, (400, 413, 431)),
            "flood in one header": (get + b"Host: localhost\r\nX: " + b"y" * 2000000, (400, 413, 431)),
            "long path": (b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (404, 414, 431)),
            "no method": (b" /health HTTP/1.1\r\nHost: localhost\r\n\r\n", (400, None)),
            "rubbish": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", (400, None)),
            "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 403, 505, None)),
            "HTTP/9": (b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n", (200, 400, 505, None)),
            "bad chunk": (post(b"Transfer-Encoding: chunked", b"zz\r\n"), (400, None)),
            "negative chunk": (post(b"Transfer-Encoding: chunked", b"-5\r\nhello\r\n0\r\n\r\n"), (400, None)),
            "huge chunk": (post(b"Transfer-Encoding: chunked", b"ffffffffffffffffff\r\nx"), (400, 413, None)),
        }
        for name, (data, wanted) in cases.items():
            with self.subTest(name):
                out = self.server.raw(data, wait=0.7)
                statuses = [int(s) for s in re.findall(rb"HTTP/1\.[01] (\d+) ", out)]
                for status in statuses or [None]:  # what was smuggled is not answered
                    self.assertIn(status, wanted, out[:300])
                self.assertNotIn(b"weft_", out)
        self.assertEqual(self.server.get("/health").status, 200)

    def test_pipelined(self):
        """Requests one behind the other are answered in order: a body ends where it says."""
        body = b'{"content":"a"}'
        one = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        two = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        out = self.server.raw(one + two)
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", out), [b"200", b"200"])
        self.assertLess(out.index(b'"tokens"'), out.index(b'"status"'))

    def test_head_byte_by_byte(self):
        with self.server.connect() as s:
            for c in b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n":
                s.sendall(bytes([c]))
            self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 200 "))


class Access(Case):
    options = ("--api-key", "correct-horse-battery", "--api-key", "sha256:" + "ab" * 32, "--origin", "https://app.example", "--allow-host", "ai.example")

    def test_keys(self):
        body = {"prompt": "[say ok]"}
        good = {"Authorization": "Bearer correct-horse-battery"}
        self.assertEqual(self.server.post(TEXT, body, headers=good).status, 200)
        self.assertEqual(self.server.post(LLAMA, body, headers={"X-Api-Key": "correct-horse-battery"}).status, 200)
        for key in ("", "correct-horse-batter", "correct-horse-batteryy", "ab" * 32, "sha256:" + "ab" * 32, "CORRECT-HORSE-BATTERY"):
            for path in (TEXT, LLAMA, "/slots/0?action=erase"):
                answer = self.server.post(path, body, headers={"Authorization": "Bearer " + key})
                self.assertEqual(answer.status, 401, key)
                self.assertEqual(answer.json["error"]["type"], "authentication_error")
        for path in ("/v1/models", "/metrics", "/slots", "/props"):
            self.assertEqual(self.server.get(path).status, 401)
            self.assertEqual(self.server.get(path).headers["www-authenticate"], "Bearer")
        self.assertEqual(self.server.get("/health").status, 200)

    def test_slots_belong_to_their_tenant(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("# keys\nfirst-key-of-two\n  second-key-of-two  # of Bob\n")
            f.flush()
            server = self.own("--api-key-file", f.name)
        first, second = ({"Authorization": "Bearer %s-key-of-two" % who} for who in ("first", "second"))
        self.assertEqual(server.post(LLAMA, {"prompt": "[say abc]"}, headers=first).status, 200)
        self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}, headers=second).status, 400)
        self.assertEqual(server.post("/slots/0?action=erase", {}, headers=second).status, 400)
        self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}, headers=first).status, 200)

    def test_cors(self):
        origin = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        answer = self.server.ask("OPTIONS", CHAT, headers=origin)
        self.assertEqual((answer.status, answer.headers["access-control-allow-origin"]), (204, "https://app.example"))
        self.assertIn("Authorization", answer.headers["access-control-allow-headers"])
        self.assertEqual(self.server.get("/health", headers=origin).headers["access-control-allow-origin"], "https://app.example")
        other = self.server.ask("OPTIONS", CHAT, headers={"Origin": "https://evil.example"})
        self.assertEqual(other.status, 403)
        self.assertNotIn("access-control-allow-origin", other.headers)
        self.assertNotIn("access-control-allow-origin", self.server.get("/health").headers)
        same = self.server.get("/health", headers={"Origin": "http://127.0.0.1:%d" % self.server.port})
        self.assertEqual(same.status, 200)

    def test_hosts(self):
        for host, status in (("ai.example", 200), ("AI.example:80", 200), ("localhost:1", 200), ("[::1]", 200), ("127.3.2.1", 200), ("me.localhost", 200), ("ai.example.org", 403)):
            self.assertEqual(self.server.get("/health", headers={"Host": host}).status, status, host)

    def test_aliases(self):
        server = self.own("--alias", "gpt-4o", "--alias", "other")
        self.assertEqual([m["id"] for m in server.get("/v1/models").json["data"]], ["gpt-4o", "other"])
        self.assertEqual(server.post(TEXT, {"model": "other", "prompt": "x"}).json["model"], "other")
        self.assertEqual(server.post(TEXT, {"prompt": "x"}).json["model"], "gpt-4o")
        self.assertEqual(server.post(TEXT, {"model": "third", "prompt": "x"}).status, 404)

    def test_bad_settings(self):
        for options, words in ((("--api-key", "short"), "shorter than 8"), (("--api-key", "sha256:xyz"), "64 hexadecimal"), (("--api-key-file", "/nonexistent"), "/nonexistent"),
                               (("--port", 70000), "port 70000"), (("--cert", "x"), "both a certificate and a key"), (("--slow", -1), "slow_s -1"), (("--host", "no.such.host.invalid"), "no.such.host"),
                               (("--unix", "/nonexistent/x.sock"), "/nonexistent/x.sock"), (("--unix", "/tmp/" + "x" * 200), "longer than")):
            p = subprocess.run([*FAKE, *map(str, options)], capture_output=True, text=True, timeout=30 * SLOWER)
            self.assertEqual(p.returncode, 1, options)
            self.assertIn(words, p.stderr)

    def test_port_taken(self):
        p = subprocess.run([*FAKE, "--port", str(self.server.port)], capture_output=True, text=True, timeout=30 * SLOWER)
        self.assertEqual(p.returncode, 1)
        self.assertIn("in use", p.stderr)


class Places(Case):
    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "weft.sock")
            server = self.own("--unix", path)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            self.assertEqual(server.post(TEXT, {"prompt": "[say ok]"}, headers={"Host": "anything"}).json["choices"][0]["text"], "ok")
            p = subprocess.run([*FAKE, "--unix", path], capture_output=True, text=True, timeout=30 * SLOWER)
            self.assertIn("another server", p.stderr)
            server.process.kill()
            server.process.wait()
            again = self.own("--unix", path)  # what a killed one left is taken over
            self.assertEqual(again.get("/health").status, 200)
            self.assertEqual(again.stop()[0], 0)
            self.assertFalse(os.path.exists(path))

    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = (os.path.join(folder, n) for n in ("cert.pem", "key.pem"))
            made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2", "-keyout", key, "-out", cert],
                                  capture_output=True) if subprocess.run(["which", "openssl"], capture_output=True).returncode == 0 else None
            if not made or made.returncode:
                self.skipTest("no openssl to make a certificate")
            import ssl
            server = self.own("--cert", cert, "--key", key)
            self.assertTrue(server.address.startswith("https://"))
            c = http.client.HTTPSConnection("localhost", server.port, timeout=20 * SLOWER, context=ssl.create_default_context(cafile=cert))
            c.request("POST", CHAT, json.dumps({"messages": user("[say over TLS]"), "stream": True}))
            self.assertIn(b"[DONE]", c.getresponse().read())
            c.close()

    def test_log(self):
        with tempfile.NamedTemporaryFile() as f:
            server = self.own("--log", f.name)
            server.post(CHAT, {"messages": user("[say secret]"), "user": "bob"})
            server.get("/nope")
            self.assertEqual(server.stop()[0], 0)
            # Lines appear as connections end, which may be in another order.
            lines = sorted((json.loads(line) for line in f.read().decode().splitlines()), key=lambda r: r["path"] == "/nope")
            self.assertEqual([(r["path"], r["status"], r["complete"]) for r in lines], [(CHAT, 200, True), ("/nope", 404, True)])
            self.assertEqual((lines[0]["tenant"], lines[0]["generated_tokens"], lines[0]["finish"]), ("user-bob", 6, "stop"))
            self.assertEqual(len({r["id"] for r in lines}), 2)
            self.assertNotIn("secret", json.dumps(lines))


def request(body, path=CHAT, more=b""):
    data = json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (path.encode(), more, len(data)) + data


class Clients(Case):
    """Those that leave, and those that do not read."""
    options = ("--slow", 2, "--idle", 3, "--ping", 1, "--buffer", 20000)

    def settled(self):
        self.assertEqual(self.server.wait_metric("weft_running", 0), 0)
        self.assertEqual(self.server.wait_metric("weft_waiting", 0), 0)
        self.assertFalse(any(s["is_processing"] for s in self.server.get("/slots").json))

    def test_gone_at_every_stage(self):
        whole = request({"messages": user("[delay 20][loop abc]"), "stream": True})
        stages = [0, 10, whole.index(b"\r\n\r\n") + 2, whole.index(b"\r\n\r\n") + 4, len(whole) - 5, len(whole)]
        for stage in stages:
            for abrupt in (False, True):
                s = self.server.connect()
                s.sendall(whole[:stage])
                if stage == len(whole):
                    self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 200"))
                if abrupt:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
        self.settled()

    def test_gone_while_waiting(self):
        """In the queue, before the first token, and between tokens of an answer that is not streamed."""
        gone = self.server.metric("weft_http_gone_total")
        for orders in ("[queue 60000]", "[delay 60000]", "[delay 20][loop abc]"):
            for stream in (False, True):
                with self.server.connect() as s:
                    s.sendall(request({"messages": user(orders), "stream": stream, "n": 2}))
                    time.sleep(0.15)
        self.settled()
        self.assertEqual(self.server.wait_metric("weft_http_gone_total", gone + 6), gone + 6)

    def test_slow_reader_is_cut(self):
        """It does not read; others are not delayed, and it is cut off."""
        cut = self.server.metric("weft_http_cut_slow_total")
        slow = []
        for _ in range(3):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.server.port))
            s.sendall(request({"messages": user("[loop " + "x" * 900 + "]"), "n": 8, "stream": True, "logprobs": True, "top_logprobs": 20}))
            slow.append(s)
        began = time.time()
        self.assertEqual(self.post(TEXT, {"prompt": "[say quick]"}).json["choices"][0]["text"], "quick")
        self.assertLess(time.time() - began, 2 * SLOWER)
        self.assertEqual(self.server.wait_metric("weft_http_cut_slow_total", cut + 3, 15), cut + 3)
        for s in slow:
            s.close()
        self.settled()

    def test_slowloris(self):
        """A head that comes in drops does not hold its connection longer than idle_s."""
        with self.server.connect() as s:
            began = time.time()
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            s.settimeout(0.3)
            closed = False
            while not closed and time.time() - began < 12 * SLOWER:
                try:
                    s.sendall(b"X: y\r\n")
                    closed = s.recv(100) == b""
                except TimeoutError:
                    pass
                except OSError:
                    closed = True
            self.assertTrue(closed)
            self.assertGreater(time.time() - began, 2)

    def test_pings(self):
        with self.server.connect() as s:
            s.sendall(request({"messages": user("[queue 60000]"), "stream": True}))
            data, until = b"", time.time() + 8 * SLOWER
            while b": ping" not in data and time.time() < until:
                data += s.recv(1000)
            self.assertIn(b": ping\n\n", data)
        self.settled()

    def test_tokens_come_one_by_one(self):
        """A token is not held until the next one."""
        with self.server.connect() as s:
            s.sendall(request({"prompt": "[delay 200][say abc]", "stream": True}, LLAMA))
            times, data = [], b""
            while data.count(b'"stop":false') < 3:
                data += s.recv(10000)
                while len(times) < data.count(b'"stop":false'):
                    times.append(time.time())
            self.assertGreater(times[2] - times[0], 0.25)

    def test_many_at_once(self):
        answers = []

        def one(i):
            a = self.server.post(CHAT, {"messages": user("[delay 1][say answer %d]" % i), "stream": i % 2 == 0})
            text = "".join(c["choices"][0]["delta"].get("content", "") for c in a.events[:-1]) if i % 2 == 0 else a.json["choices"][0]["message"]["content"]
            answers.append((i, text))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(64)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(answers), [(i, "answer %d" % i) for i in range(64)])


class Limits(Case):
    options = ("--connections", 6, "--per-ip", 4)

    def test_connections(self):
        held = [self.server.connect() for _ in range(4)]
        time.sleep(0.2)
        answer = self.server.get("/health")
        self.assertEqual((answer.status, answer.headers["connection"].lower()), (429, "close"))
        for s in held:
            s.close()
        until = time.time() + 5 * SLOWER
        while self.server.get("/health").status != 200 and time.time() < until:
            time.sleep(0.05)
        self.assertEqual(self.server.get("/health").status, 200)

    def test_full(self):
        server = self.own("--connections", 3)
        held = [server.connect() for _ in range(3)]
        time.sleep(0.2)
        self.assertEqual(server.get("/health").status, 503)
        for s in held:
            s.close()


class Ending(Case):
    def test_drains(self):
        """What runs is finished; what is new is refused."""
        server = self.own("--drain", 20)
        got = {}

        def one():
            got["answer"] = server.post(TEXT, {"prompt": "[delay 50][say abcdefghij]", "stream": True})
        kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        kept.request("GET", "/health")
        self.assertEqual(kept.getresponse().read(), b'{"status":"ok"}')
        t = threading.Thread(target=one)
        t.start()
        time.sleep(0.15)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        kept.request("POST", TEXT, json.dumps({"prompt": "x"}))
        r = kept.getresponse()
        self.assertEqual((r.status, r.getheader("Connection").lower()), (503, "close"))
        with self.assertRaises(OSError):
            server.connect()
        t.join()
        self.assertEqual("".join(c["choices"][0]["text"] for c in got["answer"].events[:-1]), "abcdefghij")
        _, err = server.process.communicate(timeout=20)
        self.assertEqual((server.process.returncode, err), (0, "cancelled 0\n"))

    def test_cancels_at_last(self):
        for second_signal in (False, True):
            server = self.own("--drain", 30 if second_signal else 1)
            results = []

            def one(stream):
                try:
                    results.append(server.post(TEXT, {"prompt": "[delay 50][loop a]", "stream": stream, "max_tokens": 2000}))
                except (OSError, http.client.HTTPException) as e:
                    results.append(e)
            threads = [threading.Thread(target=one, args=(i % 2 == 0,)) for i in range(6)]
            for t in threads:
                t.start()
            time.sleep(0.3)
            began = time.time()
            server.process.send_signal(signal.SIGTERM)
            if second_signal:
                time.sleep(0.2)
                server.process.send_signal(signal.SIGTERM)
            for t in threads:
                t.join()
            _, err = server.process.communicate(timeout=20 * SLOWER)
            self.assertEqual((server.process.returncode, err), (0, "cancelled 6\n"))
            self.assertLess(time.time() - began, 8 * SLOWER)
            for r in results:
                self.assertIsInstance(r, Answer)
                if r.status != 503:
                    self.assertIn("error", r.events[-1])

    def test_stops_while_clients_hang(self):
        server = self.own("--drain", 1)
        held = [server.connect() for _ in range(5)]
        for s in held[:3]:
            s.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        status, err = server.stop()
        self.assertEqual(status, 0, err)


class Documents(unittest.TestCase):
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
        server = Server()
        try:
            for path, operations in document["paths"].items():
                for method in operations:
                    real = path.replace("{model}", "fake").replace("{id_slot}", "0")
                    self.assertNotIn(server.ask(method.upper(), real, b"{}" if method == "post" else None).status, (404, 405), path)
        finally:
            server.stop()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main(verbosity=1)
