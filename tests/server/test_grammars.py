# SPDX-License-Identifier: Apache-2.0
"""A grammar or schema that comes again is not compiled again, whoever sends it, and waits for no other: in so many bytes, and those used longest
ago go. Over a scripted model (fake_engine.c), whose grammars hold a thousand times the bytes of their text.

usage: test_grammars.py build/fake_server"""
import os
import threading
import unittest

from servers import CHAT, LLAMA, TEXT, Case, user, wait_until

SAY = {"prompt": "[say x]"}
WAYS = ("compiled", "found", "dropped")


class Grammars(Case):
    def counts(self, server):
        return [int(server.metric(f"weft_grammars_{way}_total")) for way in WAYS] + [int(server.metric("weft_grammars"))]

    def test_what_was_compiled_is_found(self):
        """By each field, also where texts are alike and kinds are not; a stream's, and one of another client. What is refused is not kept."""
        server = self.own()
        schema = {"type": "object"}
        named = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
        asks = ((TEXT, {**SAY, "grammar": "root ::= {}"}), (LLAMA, {**SAY, "json_schema": schema}), (CHAT, {"messages": user("[say x]"), **named}),
                (TEXT, {**SAY, "response_format": {"type": "json_object"}}), (LLAMA, {**SAY, "json_schema": {}}),
                (TEXT, {**SAY, "grammar": "root ::= {}", "stream": True, "user": "another"}))
        for path, body in asks:
            self.assertEqual(server.post(path, body).status, 200, body)
        self.assertEqual(self.counts(server), [4, 2, 0, 4])  # a grammar, the schema of two, an object, any value
        for path, body in asks:
            self.assertEqual(server.post(path, body).status, 200, body)
        self.assertEqual(self.counts(server), [4, 8, 0, 4])
        for _ in range(2):
            self.assertEqual(server.post(TEXT, {**SAY, "grammar": "none"}).status, 400)
        self.assertEqual(self.counts(server), [4, 8, 0, 4])

    def test_bounds_beyond_64_bits(self):
        """Those of a schema, as libraries write them; what is to be exact is refused, and so are they in other fields."""
        for key, value in (("maximum", 2 ** 64 - 1), ("minimum", -2 ** 63 - 1), ("exclusiveMaximum", 2 ** 200)):
            schema = {"type": "object", "properties": {"a": {"type": "integer", key: value}}}
            self.post(CHAT, {"messages": user("[say x]"), "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}})
            self.post(LLAMA, {**SAY, "json_schema": schema})
        for more in ({"json_schema": {"const": 2 ** 64 - 1}}, {"json_schema": {"enum": [2 ** 64 - 1], "maximum": 2 ** 64 - 1}}, {"seed": 2 ** 63}):
            self.assertIn("must fit in 64 bits", self.post(TEXT, {**SAY, **more}, 400).json["error"]["message"], more)

    def test_what_was_compiled_waits_for_none(self):
        """And of many that come with the same at once, one compiles it."""
        (server, hold), held = self.own_held(), {**SAY, "grammar": "root ::= held"}
        self.assertEqual(server.post(TEXT, {**SAY, "grammar": "root ::= known"}).status, 200)
        open(hold, "w").close()
        answers = []
        flood = self.run_all(8, lambda: answers.append(server.post(TEXT, held).status))
        self.assertTrue(wait_until(lambda: server.metric("weft_http_requests") >= 8))
        for _ in range(3):
            self.assertEqual(server.post(TEXT, {**SAY, "grammar": "root ::= known"}).status, 200)
        self.assertEqual(self.counts(server)[:2], [1, 3])
        os.unlink(hold)
        for t in flood:
            t.join()
        self.assertEqual((answers, self.counts(server)), ([200] * 8, [2, 10, 0, 2]))

    def test_bytes_and_number_are_bounded(self):
        """What was used longest ago goes first; one that alone is too large is not kept."""
        server = self.own()
        def ask(i, n):
            self.assertEqual(server.post(TEXT, {**SAY, "grammar": f"root ::= {i} ".ljust(n, "#")}).status, 200)
        for i in range(4):
            ask(i, 60000)  # of which four fit
        self.assertEqual(self.counts(server), [4, 0, 0, 4])
        ask(0, 60000)
        ask(4, 60000)  # in place of the second
        ask(0, 60000)
        self.assertEqual(self.counts(server), [5, 2, 1, 4])
        ask(1, 60000)
        self.assertEqual(self.counts(server), [6, 2, 2, 4])
        self.assertLessEqual(server.metric("weft_grammar_bytes"), 256 << 20)
        schema = {"title": "#" * 300000}
        for _ in range(2):
            self.assertEqual(server.post(LLAMA, {**SAY, "json_schema": schema}).status, 200)
        self.assertEqual(self.counts(server)[:2], [8, 2])
        for i in range(1100):
            ask(f"small {i}", 30)
        self.assertEqual(self.counts(server)[3], 1024)

    def test_threads_share_one(self):
        """Many clients with the same few at once, while others push them out: each is answered."""
        server, wrong = self.own(), []
        def ask(i):
            for k in range(12):
                body = {**SAY, "grammar": f"root ::= {(i + k) % 5} ".ljust(70000 if k % 3 == 0 else 40, "#")}
                answer = server.post(TEXT, body)
                if answer.status != 200:
                    wrong.append(answer.body)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])
        compiled, found, dropped, held = self.counts(server)
        self.assertEqual((compiled + found, held), (72, compiled - dropped))


if __name__ == "__main__":
    unittest.main()
