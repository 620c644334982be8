# SPDX-License-Identifier: Apache-2.0
"""Faults, against the real program: bad requests, clients that go at every stage, too few pages, a full queue, files that may
not grow (test_faults_disk.py: a full disk), SIGTERM under load. Whatever happened, what is served afterwards is what was served before.

usage: test_faults.py build/weft"""
import concurrent.futures
import http.client
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

import real
from bad_requests import Facts, bad_requests
from servers import CHAT, LLAMA, SANITIZED, TEXT, of_one_thread, request, user, wait_until

STORY = "Once upon a time there was a little girl named Lily. " * 5
ASK = {"prompt": STORY, "seed": 3, "temperature": 0.8, "max_tokens": 40}


class Serving(unittest.TestCase):
    def serve(self, *options, **more):
        server = real.serve(*options, **more)
        self.addCleanup(lambda: server.process.stdout.closed or server.kill())
        return server

    def answer(self, server, body=None):
        a = server.post(TEXT, body or ASK)
        self.assertEqual(a.status, 200, a.body)
        return a.json["choices"][0]["text"]

    def fill_disk(self, store, **more):
        """Prefixes and slots that cannot be written: answers are as ever, the slot's save says why, and nothing half is used later."""
        server = self.serve("--store", store, **more)
        before = self.answer(server)
        self.assertEqual(server.post(LLAMA, {"prompt": STORY, "n_predict": 60, "id_slot": 0, "temperature": 0}).status, 200)
        failed = server.post("/slots/0?action=save", {"filename": "mine"})
        self.assertNotEqual(failed.status, 200)
        self.assertRegex(failed.json["error"]["message"], "File too large|No space left|hold|cap")
        self.assertTrue(wait_until(lambda: server.metric("weft_store_waiting") == 0))
        self.assertEqual(self.answer(server), before)
        real.checked_stop(server)
        again = self.serve("--store", store)
        self.assertEqual(again.post("/slots/0?action=restore", {"filename": "mine"}).status, 404)
        self.assertEqual(self.answer(again), before)
        real.checked_stop(again)


class Faults(Serving):
    def settled(self, server):
        for name in ("weft_running", "weft_waiting", "weft_kv_pages_used"):
            self.assertEqual(server.wait_metric(name, 0), 0, name)
        self.assertEqual(server.wait_metric("weft_http_requests", 1), 1)  # the one that asks
        # a request whose client is gone may be read only now
        self.assertTrue(wait_until(lambda: not any(s["is_processing"] for s in server.get("/slots").json)))

    @of_one_thread
    def test_bad_requests(self):
        with tempfile.TemporaryDirectory() as folder:
            server = self.serve("--max-body", 4, "--chat-template", real.write_template(folder))
        before = self.answer(server)
        props = server.get("/props").json
        facts = Facts(server.get("/v1/models").json["data"][0]["id"], real.N_VOCAB, props["default_generation_settings"]["n_ctx"], props["total_slots"])
        cases = bad_requests(facts)
        self.assertGreaterEqual(len(cases), 120)
        for path, body, status, words, field in cases:
            with self.subTest(path=path, body=repr(body)[:80]):
                answer = server.post(path, body)
                self.assertEqual(answer.status, status, answer.body[:300])
                error = answer.json["error"]
                self.assertIn(words, error["message"])
                if field and path.startswith("/v1/"):
                    self.assertEqual(error["param"], field)
        self.settled(server)
        self.assertEqual(self.answer(server), before)
        real.checked_stop(server)

    @of_one_thread
    def test_without_a_chat_template(self):
        """It gets ChatML, which is said at the start, and refuses what that has no form for; with a template that is given the model chats in it, and
        one that is none is told at the start."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        model = os.path.join(folder, "model.gguf")
        real.without_template(model)
        server = self.serve(model=model)
        talk = [{"role": "system", "content": "Be brief."}, *user("hi"), {"role": "assistant", "content": "Yes?"}, *user("Go on.")]
        self.assertEqual(
            server.post("/apply-template", {"messages": talk}).json["prompt"],
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\nGo on."
            "<|im_end|>\n<|im_start|>assistant\n")
        self.assertEqual(server.post(CHAT, {"messages": talk, "max_tokens": 4}).status, 200)
        self.assertIn("<|im_start|>", server.get("/props").json["chat_template"])
        call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        said = server.post(CHAT, {"messages": [*user("hi"), {"role": "assistant", "content": None, "tool_calls": [call]}]})
        self.assertEqual(said.status, 400)
        self.assertIn("has no tool calls", said.json["error"]["message"])
        self.assertIn("the model has no chat template; it gets ChatML (another one: --chat-template FILE)", real.checked_stop(server))
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
            f.write("{% for m in messages %}[{{ m.content }}]{% endfor %}")
            f.flush()
            server = self.serve("--chat-template", f.name, model=model)
            self.assertEqual(server.post("/apply-template", {"messages": user("hi")}).json["prompt"], "[hi]")
            self.assertEqual(server.post(CHAT, {"messages": user("hi"), "max_tokens": 4}).status, 200)
            self.assertIn("[{{ m.content }}]", server.get("/props").json["chat_template"])
            real.checked_stop(server)
            f.write("{% for m in")
            f.flush()
            with self.assertRaisesRegex(RuntimeError, "chat template"):
                self.serve("--chat-template", f.name, model=model)
        with self.assertRaisesRegex(RuntimeError, "/nowhere.jinja"):
            self.serve("--chat-template", "/nowhere.jinja", model=model)

    def plan(self):
        """The model compiled, in a folder that goes."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "model.plan")
        subprocess.run([*real.EMULATOR, real.PROGRAM, "compile", real.MODEL, path], check=True, stderr=subprocess.PIPE)
        return path

    def test_a_file_that_is_made_shorter_while_it_is_served_is_named(self):
        """Whatever thread reads it first: the server ends with a message and a status, and by no signal."""
        plan = self.plan()
        server = self.serve(model=plan)
        self.answer(server)
        os.truncate(plan, 4096)
        with self.assertRaises((http.client.HTTPException, OSError)):
            server.post(TEXT, ASK)
        status, err = server.ended()
        self.assertEqual(status, 1, err)
        for words in (plan, "made shorter while it was in use", "restore the file and start again"):
            self.assertIn(words, err)

    @of_one_thread
    def test_a_file_that_is_overwritten_while_it_is_served_is_the_servers_fault(self):
        """What is computed of it is no number: an answer of 500 that says so and names no path, for texts and for embeddings."""
        plan = self.plan()
        server = self.serve(model=plan)
        self.answer(server)
        n = os.path.getsize(plan)
        with open(plan, "r+b") as f:
            f.seek(n // 4)
            f.write(b"\xff" * (n - n // 4))
        for path, body in (
            (TEXT, ASK),
            (CHAT, {"messages": user("hi"), "max_tokens": 4}),
            (LLAMA, {"prompt": "x", "n_predict": 4}),
            ("/v1/embeddings", {"input": "x"}),
        ):
            said = server.post(path, body)
            self.assertEqual(said.status, 500, (path, said.body))
            self.assertIn("the model's file is damaged, or was overwritten while it was in use", said.json["error"]["message"])
            self.assertNotIn(os.path.dirname(plan), said.body.decode())
        self.assertEqual(real.checked_stop(server).count(plan), 1)  # the log says where it lies, once

    @of_one_thread
    def test_a_saved_slot_that_is_damaged_is_the_servers_fault(self):
        """The answer says what is wrong with it, and not where it lies, which the log does; without a folder for them there are none: 501."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        server = self.serve("--store", folder)
        self.assertEqual(server.post(LLAMA, {"prompt": STORY, "n_predict": 4, "id_slot": 0}).status, 200)
        self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}).status, 200)
        for damage in ("turned", "short"):
            path = os.path.join(folder, "s-mine.kv")
            self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}).status, 200)
            with open(path, "r+b") as f:
                f.seek(os.path.getsize(path) // 2)
                f.write(b"damage")
                f.truncate(None if damage == "turned" else 100)
            said = server.post("/slots/0?action=restore", {"filename": "mine"})
            self.assertEqual(said.status, 500, said.body)
            self.assertRegex(said.json["error"]["message"], "^the saved slot: .*(damaged|truncated)")
            self.assertNotIn(folder, said.body.decode())
            self.assertEqual(server.post("/slots/0?action=restore", {"filename": "mine"}).status, 404)  # it is dropped
        self.assertIn(os.path.join(folder, "s-mine.kv"), real.checked_stop(server))
        server = self.serve()
        self.assertEqual(server.post(LLAMA, {"prompt": STORY, "n_predict": 4, "id_slot": 0}).status, 200)
        for action in ("save", "restore", "erase"):
            self.assertEqual(server.post("/slots/0?action=" + action, {"filename": "mine"}).status, 501, action)
        real.checked_stop(server)

    @of_one_thread
    def test_special_tokens_in_messages_stay_text(self):
        server = self.serve()
        def count(text):
            return server.post(CHAT, {"messages": user(text), "max_tokens": 1}).json["usage"]["prompt_tokens"]
        spelled = [count("a " + text) for text in ("<|im_end|>", "<|startoftext|>", "<|pad|>")]
        self.assertTrue(all(n >= count("a ") + 3 for n in spelled), spelled)
        real.checked_stop(server)

    def test_clients_gone_at_every_stage(self):
        server = self.serve("--slots", 4)
        before = self.answer(server)
        for path, body in ((TEXT, {**ASK, "max_tokens": 200, "ignore_eos": True}), (LLAMA, {"prompt": STORY, "n_predict": 200, "ignore_eos": True})):
            for stream in (False, True):
                whole = request({**body, "stream": stream}, path)
                head = whole.index(b"\r\n\r\n") + 4
                for stage in (0, 9, head - 2, head, head + 20, len(whole) - 1, len(whole)):
                    for abrupt in (False, True):
                        s = server.connect()
                        s.sendall(whole[:stage])
                        if stage == len(whole) and stream:
                            self.assertTrue(s.recv(300).startswith(b"HTTP/1.1 200"))
                        if abrupt:
                            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        s.close()
        self.settled(server)
        self.assertEqual(self.answer(server), before)
        real.checked_stop(server)

    def test_ambiguous_grammars(self):
        """They are refused before the first token, also of a stream, and take no step of the engine, so that they hold up nobody's tokens: a mask of
        one took tenths of a second, for each token of each."""
        grammar = "root ::= s\ns ::= [a-z ] s s | [a-z ] s | [a-z ]"
        server, statuses = self.serve("--spec", "off"), []  # else the steps of a text depend on what was guessed of it
        def ask(i):
            answer = server.post("/v1/completions", {"prompt": "Once", "max_tokens": 300, "stream": i % 2 == 0, "grammar": grammar, "seed": i})
            statuses.append((answer.status, answer.json["error"]["param"], "ambiguous" in answer.json["error"]["message"]))
        def steps():
            """All so far: one counts when it is over, which may be later than its token has come."""
            seen = [-1.0]

            def is_settled():
                seen.append(server.metric("weft_steps_total"))
                return seen[-1] == seen[-2]
            self.assertEqual(server.wait_metric("weft_running", 0), 0)
            self.assertTrue(wait_until(is_settled, 0.05))
            return seen[-1]
        def stream():
            before = steps()
            answer = server.post("/v1/completions", {"prompt": "Lily", "max_tokens": 120, "stream": True, "ignore_eos": True})
            self.assertEqual(answer.events[-1], "[DONE]")
            return steps() - before
        stream()
        alone = stream()
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        beside = stream()
        for t in threads:
            t.join()
        self.assertEqual(statuses, [(400, "grammar", True)] * 6)
        self.assertEqual((beside, server.metric("weft_requests_total{finish=\"length\"}")), (alone, 3))

    @of_one_thread
    def test_hostile_schemas(self):
        """Schemas that attack time and memory are refused with 400 by the place or the rule, and what is too long with 413, before a step of the
        engine; one that is large and no attack is answered, and so is the next request."""
        server = self.serve()
        before, steps = self.answer(server), server.metric("weft_steps_total")
        defs = lambda n, one: {"$ref": "#/$defs/0", "$defs": {str(i): one(i) for i in range(n)}}
        values = lambda n: {"enum": [f"value number {i} of very many" for i in range(n)]}
        text = lambda pattern: {"type": "string", "pattern": pattern}
        for schema, status, words in (
            ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, 400, "schema: #: no finite value"),
            (defs(50, lambda i: {"$ref": f"#/$defs/{(i + 1) % 50}"}), 400, "schema: #: no finite"),
            ({"anyOf": [{"type": "null"}] * 10000}, 400, "at most"),
            (text("^(a?){1000}a{1000}$"), 400, "schema: #: can be read in ever more ways"),
            (text("^((((a{0,20}){0,20}){0,20}){0,20}){0,20}$"), 400, "states"),
            (text("^.{0,100000}$"), 400, "states"),
            (values(60000), 400, "at most"),
            (values(400000), 413, ""),
        ):
            for path, field, body in ((CHAT, "response_format", {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}),
                                      (LLAMA, "json_schema", {"prompt": "x", "json_schema": schema})):
                answer = server.post(path, {"messages": [{"role": "user", "content": "x"}], **body} if path == CHAT else body)
                message = answer.json["error"]["message"]
                self.assertEqual(answer.status, status, message)
                if status == 400:
                    self.assertIn(field, message)
                    self.assertIn(words, message)
        self.assertEqual(server.metric("weft_steps_total"), steps)
        many = {"type": "object", "properties": {f"member_{i}": {"type": "string", "maxLength": 300} for i in range(500)}}
        self.assertEqual(server.post(LLAMA, {"prompt": "x", "n_predict": 3, "json_schema": many}).status, 200)
        self.assertEqual(self.answer(server), before)
        real.checked_stop(server)

    def test_pages_run_out(self):
        """Those that fit in turns are all answered, and rightly; one that never fits is refused."""
        server = self.serve("--ctx", 512, "--kv-tokens", 320)
        n = 8 if SANITIZED else 24
        asks = [{**ASK, "prompt": STORY[i:i + 100], "max_tokens": 200, "seed": i, "ignore_eos": True} for i in range(n)]
        alone = [self.answer(server, body) for body in asks[:6]]
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            together = list(pool.map(lambda body: self.answer(server, body), asks))
        self.assertEqual(together[:6], alone)
        self.answer(server, {**asks[0], "n": 4})  # these meet, whoever else did
        self.assertGreater(server.metric("weft_preempted_total"), 0)
        cut = server.post(TEXT, {**ASK, "prompt": STORY, "max_tokens": 350, "ignore_eos": True}).json
        self.assertEqual(cut["choices"][0]["finish_reason"], "length")
        self.assertTrue(200 < cut["usage"]["completion_tokens"] < 320, cut["usage"])
        refused = server.post(TEXT, {"prompt": STORY * 5, "max_tokens": 350})
        self.assertEqual(refused.status, 400, refused.body)
        self.assertIn("KV pages", refused.json["error"]["message"])
        self.settled(server)
        real.checked_stop(server)

    def test_a_full_queue(self):
        """While one runs that takes long, few can wait; these are answered when it has left."""
        server = self.serve("--slots", 1, "--queue", 2, "--ctx", 8192, "--rope-scale", 16)
        body = {**ASK, "max_tokens": 30, "ignore_eos": True}
        long = server.connect()
        long.sendall(request({**body, "max_tokens": 8000, "stream": True}, TEXT))
        self.assertTrue(long.recv(300).startswith(b"HTTP/1.1 200"))
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            asked = [pool.submit(server.post, TEXT, body) for _ in range(16)]
            concurrent.futures.wait(asked, return_when=concurrent.futures.FIRST_COMPLETED)
            long.close()
            answers = [a.result() for a in asked]
        self.assertEqual({a.status for a in answers}, {200, 429})
        self.assertEqual(len({a.json["choices"][0]["text"] for a in answers if a.status == 200}), 1)
        for a in answers:
            if a.status == 429:
                self.assertGreaterEqual(int(a.headers["retry-after"]), 1)
        self.settled(server)
        real.checked_stop(server)

    @of_one_thread
    def test_files_may_not_grow(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fill_disk(os.path.join(folder, "store"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))

    @of_one_thread
    def test_a_trace_that_cannot_be_written_ends(self):
        """It is told when that happens, once, and the server goes on."""
        server = self.serve("--trace", "/dev/full")
        before = self.answer(server)
        wait_until(lambda: any("the trace" in line for line in server.err))
        self.assertEqual(sum("the trace could not be written" in line for line in server.err), 1)
        self.assertEqual(self.answer(server), before)
        self.assertEqual(real.checked_stop(server).count("the trace"), 1)

    @of_one_thread
    def test_the_store_keeps_to_its_size(self):
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "store")
            server = self.serve("--store", store, "--store-mb", 1, "--ctx", 512)
            for i in range(24):
                self.answer(server, {"prompt": "%d. %s" % (i, STORY * 2), "max_tokens": 1})
            real.checked_stop(server)
            total = sum(os.path.getsize(os.path.join(store, name)) for name in os.listdir(store))
            self.assertTrue(0 < total <= 1 << 20, total)

    def test_another_model_finds_nothing_in_the_store(self):
        """One of the same name and shape, whose weights differ: what the first has computed is never its own, nor is its slot."""
        with tempfile.TemporaryDirectory() as folder:
            store, other = (os.path.join(folder, name) for name in ("store", os.path.basename(real.MODEL)))
            real.with_other_weights(other)
            alone = self.serve(model=other)
            wanted = self.answer(alone)
            real.checked_stop(alone)
            first = self.serve("--store", store)
            self.assertNotEqual(self.answer(first), wanted)
            self.assertEqual(first.post(LLAMA, {"prompt": STORY, "n_predict": 1, "id_slot": 0}).status, 200)
            self.assertEqual(first.post("/slots/0?action=save", {"filename": "mine"}).status, 200)
            real.checked_stop(first)
            second = self.serve("--store", store, model=other)
            self.assertEqual(second.post("/slots/0?action=restore", {"filename": "mine"}).status, 404)
            self.assertEqual(self.answer(second), wanted)
            self.assertEqual((second.metric("weft_store_hits_total"), second.metric("weft_prefix_hit_tokens_total")), (0, 0))
            real.checked_stop(second)
            again = self.serve("--store", store)  # nor does the other one take away what is not its own
            self.assertEqual(again.post("/slots/0?action=restore", {"filename": "mine"}).status, 200)
            real.checked_stop(again)

    @of_one_thread
    def test_a_second_server_cannot_have_the_store(self):
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "store")
            server = self.serve("--store", store)
            with self.assertRaisesRegex(RuntimeError, "another process"):
                real.serve("--store", store)
            real.checked_stop(server)

    def test_sigterm_under_load(self):
        for patient in (True, False):
            server = self.serve("--drain", 200 if patient else 1, "--slots", 2, "--ctx", 8192, "--rope-scale", 16)
            long = 300 if SANITIZED else 1500
            before, body = self.answer(server), {**ASK, "max_tokens": long if patient else 8000, "ignore_eos": True}
            results, began = [], threading.Semaphore(0)

            def one(stream):
                began.release()
                try:
                    results.append(server.post(TEXT, {**body, "stream": stream}))
                except (OSError, http.client.HTTPException) as e:
                    results.append(e)
            threads = [threading.Thread(target=one, args=(i % 2 == 0,)) for i in range(6 if patient else 24)]
            for t in threads:
                t.start()
                began.acquire()
            self.assertEqual(server.wait_metric("weft_running", 2), 2)
            n_accepted = server.metric("weft_running") + server.metric("weft_waiting")
            server.process.send_signal(signal.SIGTERM)
            for t in threads:
                t.join()
            status, err = server.ended()
            self.assertEqual(status, 0, err)
            if patient:  # each that was accepted has its whole answer
                self.assertNotIn("cancelled", err)
                texts = []
                for r in results:
                    if isinstance(r, Exception) or r.status == 503:
                        continue  # it came after the signal
                    self.assertEqual(r.status, 200, r.body)
                    streamed = r.headers["content-type"].startswith("text/event-stream")
                    texts.append("".join(c["choices"][0]["text"] for c in r.events[:-1]) if streamed else r.json["choices"][0]["text"])
                self.assertGreaterEqual(len(texts), n_accepted)
                self.assertEqual(len(set(texts)), 1)
                self.assertTrue(texts[0].startswith(before[:20]))
            else:
                self.assertIn("cancelled", err)
                for r in results:
                    self.assertTrue(isinstance(r, Exception) or r.status in (200, 499, 500, 503), r)


if __name__ == "__main__":
    unittest.main(verbosity=1)
