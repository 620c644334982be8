# SPDX-License-Identifier: Apache-2.0
"""Of llama.cpp's dialect: completions, tokens, templates; what the server tells of itself, slots and metrics."""
import hashlib
import http.client
import json
import os
import re
import resource
import signal
import tempfile
import time

from servers import CHAT, FAKE, LLAMA, PATIENCE, ROOT, TEXT, Server, request, user, wait_until


class Texts:
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


class State:
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
