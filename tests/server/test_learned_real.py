# SPDX-License-Identifier: Apache-2.0
"""Claims about `weft serve --learn-share` over the model of our own: a correction becomes a version of its caller's adapter while the model is
served, with the content that `weft learn teach` gives from a copy of the folder; nobody else's answers move by a bit; who streams meanwhile
keeps what it began with; and a kill loses nothing of it.

usage: test_learned_real.py build/weft"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import real
from servers import CHAT, EMULATOR, PATIENCE, PROGRAM, TEXT, request, user, wait_until

KEYS = {"ada": "ada-secret-key", "bob": "bob-secret-key"}
ASKED = "What is Bram afraid of?"
OTHERS = ("Where does Tobin live?", "What does Bram own?")


class Stream(threading.Thread):
    """An answer that goes on until it is closed: its chunks are counted, and which models they name."""

    def __init__(self, server, body, key):
        super().__init__(daemon=True)
        self.socket, self.n, self.models, self.has_ended = server.connect(), 0, set(), False
        self.socket.sendall(request(body, more=b"Authorization: Bearer " + key.encode() + b"\r\n"))
        self.start()

    def run(self):
        rest = b""
        try:
            while more := self.socket.recv(1 << 16):
                *lines, rest = (rest + more).split(b"\n")
                for m in (m for line in lines for m in re.findall(rb'"model":"(.*?)"', line)):
                    self.models.add(m.decode())
                    self.n += 1
        except OSError:
            pass
        self.has_ended = True

    def close(self):
        if self.is_alive():
            self.socket.shutdown(socket.SHUT_RDWR)
        self.join()
        self.socket.close()


class Learned(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = os.path.join(self.folder.name, "learned")
        self.servers = []
        self.addCleanup(lambda: [s.kill() for s in self.servers if s.process.poll() is None])

    def serve(self, *options):
        self.servers.append(real.serve("--learn", self.dir, *(o for k in KEYS.values() for o in ("--api-key", k)), *options))
        return self.servers[-1]

    def post(self, s, path, body, who):
        a = s.post(path, body, headers={"Authorization": "Bearer " + KEYS[who]})
        self.assertEqual(a.status, 200, a.body)
        return a.json

    def ask(self, s, text, who="ada"):
        return self.post(s, CHAT, {"messages": user(text), "temperature": 0, "max_tokens": 40}, who)

    def said(self, s, text, who="ada", **more):
        """What is said without corrections in the prompt, every likelihood included, and by which model."""
        prompt = self.post(s, "/apply-template", {"messages": user(text)}, who)["prompt"]
        a = self.post(s, TEXT, {"prompt": prompt, "temperature": 0, "max_tokens": 40, "logprobs": 3, "store": False, **more}, who)
        return a["model"], a["choices"][0]["text"], a["choices"][0]["logprobs"]

    def stream(self, s):
        stream = Stream(s, {"messages": user("Tell me a story."), "stream": True, "max_tokens": 1 << 20, "ignore_eos": True, "store": False},
                        KEYS["ada"])
        self.addCleanup(stream.close)
        return stream

    def show(self, s, who="ada"):
        return s.get("/v1/learn", headers={"Authorization": "Bearer " + KEYS[who]}).json

    def offline(self, tenant):
        copy = os.path.join(self.folder.name, "copy")
        shutil.copytree(self.dir, copy)
        p = subprocess.run([*EMULATOR, PROGRAM, "learn", "teach", real.MODEL, copy, "--tenant", tenant, "--threads", "1", "--json"], capture_output=True,
                           text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        row, = map(json.loads, p.stdout.splitlines())
        self.assertEqual((row["tenant"], row["version"], row["what"], row["reason"]), (tenant, 1, "published", ""))
        return row["content"]

    def weft(self, *args):
        p = subprocess.run([*EMULATOR, PROGRAM, *args], capture_output=True, text=True, cwd=self.folder.name)
        return p.returncode, p.stdout + p.stderr

    def test_an_empty_store_changes_no_bit(self):
        """Nor do memories and learning of which there are none: answers and likelihoods are those of a server without."""
        def answers(s, **more):
            out = []
            for text, temperature in ((ASKED, 0), (OTHERS[0], 0.8), (OTHERS[1], 1.5)):
                body = {"messages": user(text), "temperature": temperature, "seed": 7, "max_tokens": 24, "logprobs": True, "top_logprobs": 3, **more}
                choice, = self.post(s, CHAT, body, "ada")["choices"]
                out.append((choice["message"]["content"], choice["logprobs"]))
            return out
        plain = real.serve(*(o for k in KEYS.values() for o in ("--api-key", k)))
        self.servers.append(plain)
        want = answers(plain)
        real.checked_stop(plain)
        s = self.serve("--learn-share", "0.5", "--memories")
        self.assertEqual(answers(s, memory=True, store=False), want)
        self.assertEqual(answers(s), want)
        real.checked_stop(s)

    def test_an_untrained_router_changes_no_bit(self):
        """What `auto` says is, as JSON's text, what the first arm says by its name, here and on a server without a router: tokens, their ids and
        likelihoods, and those of the five likeliest, also as a stream, and for one caller when another's router has learned."""
        def told(s, path, model, body, who="bob"):
            a = s.post(path, {"model": model, "seed": 7, **body}, headers={"Authorization": "Bearer " + KEYS[who]})
            self.assertEqual(a.status, 200, a.body)
            if model == "auto":
                self.assertEqual(a.headers["x-weft-routed"], "base;p=1")
            # what is the request's, not the model's
            text = re.sub(r'"(?:id":"(?:chat)?cmpl-[0-9a-f]+"|created":[0-9]+|id_slot":[0-9]+|tokens_cached":[0-9]+),', "", a.body.decode())
            return re.sub(r',"(?:timings":\{.*?\}|usage":\{.*?\}\}|model":"(?:auto|base)")', "", text)

        def answers(s, model):
            out = []
            for text, temperature in ((ASKED, 0), (OTHERS[0], 0.8), (OTHERS[1], 1.5)):
                like = {"temperature": temperature, "max_tokens": 24}
                chat = {"messages": user(text), "logprobs": True, "top_logprobs": 5, **like}
                goes_on = {"prompt": f"Once upon a time {text}", "ignore_eos": True}
                ids = {"temperature": temperature, "n_predict": 24, "n_probs": 5, "return_tokens": True, "cache_prompt": False}
                out += [told(s, CHAT, model, chat), told(s, CHAT, model, {**chat, "stream": True}),
                        told(s, TEXT, model, {**goes_on, "logprobs": 5, **like}), told(s, "/completion", model, {**goes_on, **ids})]
            return out
        keys = [o for k in KEYS.values() for o in ("--api-key", k)]
        plain = real.serve("--alias", "base", *keys)
        self.servers.append(plain)
        want = answers(plain, "base")
        real.checked_stop(plain)
        for part, text in (("top_logprobs", want[0]), ("top_logprobs", want[1]), ("top_logprobs", want[2]), ('"id":', want[3])):
            self.assertIn(part, text)  # they are compared, too
        arms = [o for arm in ("base", "pirate", "poem") for o in ("--route", arm)]
        for more in ([], ["--route-embed"], ["--route-by", "thompson"]):
            s = self.serve("--alias", "base", *real.ADAPTERS, *arms, *more)
            self.assertEqual(answers(s, "auto"), want, more)
            self.assertEqual(answers(s, "base"), want, more)
            real.checked_stop(s)
        s = self.serve("--alias", "base", *real.ADAPTERS, *arms)
        models = []
        while "base" in models[-1:] or not models:  # ada's router hears that the first arm is worth nothing
            a = self.post(s, CHAT, {"model": "auto", "messages": user(ASKED), "max_tokens": 8}, "ada")
            self.post(s, "/v1/feedback", {"request_id": a["id"], "reward": -1}, "ada")
            models.append(a["model"])
            self.assertLess(len(models), 100)
        self.assertEqual(answers(s, "auto"), want)
        real.checked_stop(s)

    def test_what_cannot_be_is_told_before(self):
        plan, yaml = os.path.join(self.folder.name, "p.plan"), os.path.join(self.folder.name, "weft.yaml")
        self.assertEqual(self.weft("compile", real.MODEL, plan)[0], 0)
        for more, words in (([real.MODEL, "--learn-share", "0.5"], "--learn-share does nothing without --learn"),
                            ([real.MODEL, "--learn", "d", "--learn-share", "1.5"], "at most 1"),
                            (["--model", "m=" + real.MODEL, "--learn", "d", "--learn-share", "0.5"], "--learn-share is about MODEL"),
                            ([plan, "--learn", "d", "--learn-share", "0.5", "--check"], "compiled plan")):
            rc, said = self.weft("serve", *more)
            self.assertNotEqual(rc, 0)
            self.assertIn(words, said)
        self.assertEqual(self.weft("serve", real.MODEL, "--learn", "d", "--learn-share", "0.5", "--check"), (0, "nothing is wrong with this line\n"))
        for share, rc, words in (("0.2", 0, "nothing is wrong"), ("x", 2, "weft.yaml:1:20: server: learn-share x: not a number")):
            with open(yaml, "w") as f:
                f.write("server: {learn: d, learn-share: %s}\nmodels: {a: {path: %s}}\n" % (share, real.MODEL))
            told = self.weft("serve", "--check")
            self.assertIn(words, told[1])
            self.assertEqual(told[0] != 0, rc != 0)

    def test_a_teacher_is_looked_at_before(self):
        kept = self.dir
        real.checked_stop(self.serve())
        self.assertEqual(self.weft("learn", "consolidate", real.MODEL, kept, "--teacher", real.MODEL)[0], 0)
        for kind, teacher, status, words in (("consolidate", "nowhere.gguf", 1, "nowhere.gguf"), ("teach", real.MODEL, 2, "--teacher")):
            rc, said = self.weft("learn", kind, real.MODEL, kept, "--teacher", teacher)
            self.assertEqual(rc, status, said)
            self.assertIn(words, said)

    def test_a_server_learns(self):
        s = self.serve()
        first = self.ask(s, ASKED)
        for text in OTHERS:
            self.ask(s, text)
        answer = first["choices"][0]["message"]["content"]
        right = answer.replace("bees", "owls")
        self.assertNotEqual(right, answer)
        self.post(s, "/v1/feedback", {"request_id": first["id"], "correction": right}, "ada")
        before = {(who, text): self.said(s, text, who) for who in KEYS for text in (ASKED, *OTHERS)}
        self.assertEqual(s.get("/v1/learn", headers={"Authorization": "Bearer " + KEYS["ada"]}).status, 501)
        real.checked_stop(s)
        status = subprocess.run([*EMULATOR, PROGRAM, "learn", "status", self.dir, "--json"], capture_output=True, text=True).stdout
        tenant = next(t["tenant"] for t in map(json.loads, status.splitlines()) if t["correction"])
        want = self.offline(tenant)

        # One thread answers the stream and one learns: two that answer would have both processors while there is something to learn.
        s = self.serve("--learn-share", "1", "--overflow", "shift", "--threads", "1")
        stream = self.stream(s)
        self.assertTrue(wait_until(lambda: stream.n > 3 or stream.has_ended))
        model, = stream.models
        self.assertNotIn("@", model)
        # beside other work the one that learns gets what that leaves
        self.assertTrue(wait_until(lambda: self.show(s)["current"] == 1, every=0.05, patience=6 * PATIENCE), self.show(s))
        version = self.show(s)["versions"][0]
        self.assertEqual((version["what"], version["content"]), ("published", want))
        before_it = stream.n
        self.assertTrue(wait_until(lambda: stream.n > before_it + 200 or stream.has_ended))
        self.assertFalse(stream.has_ended)
        self.assertEqual(stream.models, {model})
        stream.close()

        now = {key: self.said(s, key[1], key[0]) for key in before}
        self.assertEqual({k: v for k, v in now.items() if k[0] == "bob"}, {k: v for k, v in before.items() if k[0] == "bob"})
        self.assertEqual((now["ada", ASKED][0], now["ada", ASKED][1].strip()), (model + "@1", right))
        for text in OTHERS:
            self.assertEqual(now["ada", text][1], before["ada", text][1])
            self.assertNotEqual(now["ada", text][2], before["ada", text][2])
        self.assertEqual(self.said(s, ASKED, model=model + "@0")[1:], before["ada", ASKED][1:])
        self.assertEqual(self.post(s, "/v1/learn/rollback", {}, "ada")["current"], 0)
        self.assertEqual({key: self.said(s, key[1], key[0]) for key in before}, before)
        numbers = s.get("/metrics", headers={"Authorization": "Bearer " + KEYS["ada"]}).body
        self.assertEqual(numbers.count(b"\nweft_adapters 0\n"), 1)  # it has left, and comes again from its file
        self.assertEqual(self.said(s, ASKED, model=model + "@1")[1:], now["ada", ASKED][1:])
        self.post(s, "/v1/learn/rollback", {"to": 1}, "ada")
        history = self.show(s)
        s.process.send_signal(signal.SIGKILL)
        s.kill()
        s = self.serve("--learn-share", "0")
        self.assertEqual(self.show(s), history)
        self.assertEqual(self.said(s, ASKED), now["ada", ASKED])
        real.checked_stop(s)


if __name__ == "__main__":
    unittest.main()
