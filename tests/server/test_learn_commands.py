# SPDX-License-Identifier: Apache-2.0
"""Claims about what `weft learn` and `weft log` say of what a server keeps: tenants by name, tables for people and lines of JSON for programs, proofs,
and the picture over time.

usage: test_learn_commands.py build/fake_server"""
import contextlib
import json
import os
import re
import sqlite3
import unittest
import xml.etree.ElementTree

from learn_case import Keeping
from servers import CHAT, user

SVG = "{http://www.w3.org/2000/svg}"


class Commands(Keeping):
    def test_commands(self):
        s = self.serve()
        a = self.ask(s, "[say One]")
        self.feedback(s, {"request_id": a["id"], "correction": "Two"})
        self.assertIn("in use by another process", self.weft("learn", "forget", self.dir, "--tenant", "x", rc=1).stderr)
        found = json.loads(self.weft("learn", "status", self.dir, "--json").stdout)
        self.assertEqual((found["answers"], found["correction"]), (1, 1))
        self.assertIn("correction", self.weft("learn", "history", self.dir).stdout)
        line = json.loads(self.weft("learn", "export", self.dir).stdout)
        self.assertEqual(line["messages"], user("[say One]") + [{"role": "assistant", "content": "Two"}])
        self.assertEqual(self.weft("learn", "export", self.dir, "--as", "pairs").stdout, "")
        proof = os.path.join(self.folder.name, "proof")
        with open(proof, "w") as f:
            f.write(self.weft("log", "prove", self.dir, "--id", a["id"]).stdout)
        entry = json.loads(self.weft("log", "check", proof, "--key", os.path.join(self.dir, "log", "public")).stdout)
        self.assertEqual((entry["kind"], entry["id"]), ("feedback", a["id"]))
        kept = os.path.join(self.folder.name, "kept")
        with open(kept, "w") as f:
            f.write(self.weft("log", "verify", self.dir).stdout)
        self.ask(s, "[say Three]")
        self.stop(s)
        self.weft("log", "verify", self.dir, "--against", kept)
        with open(os.path.join(self.dir, "log", "entries.jsonl"), "r+b") as f:
            f.seek(20)
            byte = f.read(1)
            f.seek(20)
            f.write(bytes([byte[0] ^ 1]))
        self.assertIn("entry 0 ", self.weft("log", "verify", self.dir, rc=1).stderr)
        tenant = found["tenant"]
        self.assertEqual(self.weft("learn", "forget", self.dir, "--tenant", tenant).stdout,
                         "forgotten: 2 answers, 1 events of feedback, 0 memories, 0 versions\n")
        self.assertEqual(self.weft("learn", "status", self.dir, "--json").stdout, "")

    def test_a_tenant_that_is_not_there_is_refused(self):
        """By every command that takes one, before a model is read, with the names that there are."""
        commands = [("status",), ("history",), ("export",), ("forget",), ("rollback",), ("teach", "no-model.gguf"), ("consolidate", "no-model.gguf")]

        def told(tenant, rc=1):
            said = {self.weft("learn", *c, self.dir, "--tenant", tenant, rc=rc).stderr.split(": ", 1)[1] for c in commands}
            self.assertEqual(len(said), 1, said)
            return said.pop()
        s = self.serve(keys=False)
        self.stop(s)
        self.assertEqual(told("ann"), "nothing is kept of 'ann'; nothing is kept there of anybody\n")
        s = self.serve(keys=False)
        for who in ({}, {"user": "ann"}):
            s.post(CHAT, {"messages": user("[say One]"), **who})
        self.stop(s)
        self.assertEqual(told("ben"), "nothing is kept of 'ben'; there is '(no key)' and 'user-ann'\n")
        self.assertEqual(told("ann"), "nothing is kept of 'ann'; did you mean 'user-ann'?\n")
        self.assertIn("whose; there is '(no key)' and 'user-ann'", self.weft("learn", "history", self.dir, rc=2).stderr)
        self.weft("learn", "forget", self.dir, "--tenant", "(no key)")
        self.assertEqual(told("(no key)"), "nothing is kept of '(no key)'; there is 'user-ann'\n")
        s = self.serve(keys=False)
        for i in range(12):
            s.post(CHAT, {"messages": user("[say One]"), "user": f"u{i:02}\033[1m"})
        self.stop(s)
        self.assertRegex(told("ben"), r"there is 'user-ann', 'user-u00\\x1b\[1m', .*'user-u06[^']*', and 5 more")

    def test_the_history_is_a_table_or_json(self):
        s = self.serve(keys=False)
        a = s.post(CHAT, {"messages": user("[say One]"), "user": "<ada>"}).json
        for said in ({"thumb": "down"}, {"correction": "Two"}):
            s.post("/v1/feedback", {"request_id": a["id"], "user": "<ada>", **said})
        self.stop(s)
        for row in ((1, "rejected", '{"reason": "kl", "kl": 0.25}'), (2, "published", '{"reason": "", "kl": 0.5, "by": "retrained", "why": "by kl"}'),
                    (1, "rolled back", '{"reason": ""}'), (3, "published", "no JSON")):
            self.put_version(*row)
        text = self.weft("learn", "history", self.dir).stdout
        self.assertNotRegex(text, "[{}]|rolled back")
        rows = [line.split() for line in text.splitlines()]
        self.assertEqual((rows[0][:2], rows[3], rows[4][0]), (["event", "time"], [], "version"))
        self.assertEqual([(r[0], r[3], r[4], r[-1]) for r in rows[1:3]], [("1", "thumb", a["id"], "-1"), ("2", "correction", a["id"], "Two")])
        self.assertEqual([(r[0], r[3], r[5], r[7:]) for r in rows[5:]], [
            ("learned-1@1", "rejected", "0.2500", ["kl"]), ("learned-1@2", "published", "0.5000", ["retrained", "by", "kl"]),
            ("learned-1@1", "rolled_back", "-", []), ("learned-1@3", "published", "-", [])])
        lines = self.weft("learn", "history", self.dir, "--json").stdout.splitlines()
        found = [json.loads(line) for line in lines]
        self.assertEqual([f.get("kind") or f["what"] for f in found], ["thumb", "correction", "rejected", "published", "rolled_back", "published"])
        self.assertEqual(json.loads(self.weft("learn", "rollback", self.dir, "--tenant", "user-<ada>", "--to", "0", "--json").stdout), {"current": 0})
        self.assertIn("no version 1 that was published; there are 3, 2 and 0, the base alone",
                      self.weft("learn", "rollback", self.dir, "--tenant", "user-<ada>", "--to", "1", rc=1).stderr)
        self.assertEqual(json.loads(self.weft("learn", "forget", self.dir, "--tenant", "user-<ada>", "--json").stdout),
                         {"answers": 1, "events": 2, "memories": 0, "versions": 5})

    def picture(self, *options):
        path = os.path.join(self.folder.name, "learned.svg")
        self.weft("learn", "status", self.dir, "--svg", path, *options)
        root = xml.etree.ElementTree.parse(path).getroot()
        texts = [t.text for t in root.iter(SVG + "text")]
        lines = [p.get("d") for p in root.iter(SVG + "path") if p.get("class") != "g" and "h16" not in p.get("d")]
        height = float(root.get("viewBox").split()[3])
        for x in re.findall(r"[MHL]([\d.]+)", " ".join(lines)):
            self.assertTrue(64 <= float(x) <= 860, x)
        for y in re.findall(r"V([\d.]+)", " ".join(lines)):
            self.assertTrue(0 <= float(y) <= height, y)
        self.assertNotIn("nan", " ".join(lines))
        return texts, lines, len(list(root.iter(SVG + "circle")))

    def put_version(self, version, what, report):
        """Of the tenant that has '<' in its name, as learning puts it there."""
        with contextlib.closing(sqlite3.connect(os.path.join(self.dir, "learn.db"))) as db:
            db.execute("INSERT INTO versions(tenant, adapter, version, what, content, parent, path, first_event, last_event, options, report, time)"
                       " SELECT tenant, 'learned-1', ?, ?, '', '', '', 0, 0, '', ?, max(time) + ? FROM answers"
                       " WHERE tenant = (SELECT tenant FROM tenants WHERE name LIKE '%<%')", (version, what, report, 60000 * version))
            db.commit()

    def test_the_picture(self):
        """What became of each tenant's versions, and when; texts of callers stay texts; a file of the store is not written over."""
        s = self.serve(keys=False)
        for i in range(3):
            a = s.post(CHAT, {"messages": user("[say One]"), "user": "<ada & co>"}).json
            for said in ({"thumb": "up"}, {"correction": f"Two {i}"})[: 1 + i]:
                self.assertEqual(s.post("/v1/feedback", {"request_id": a["id"], "user": "<ada & co>", **said}).status, 200)
        s.post(CHAT, {"messages": user("[say One]")})
        self.stop(s)
        texts, lines, dots = self.picture()
        self.assertEqual([t for t in texts if t in ("user-<ada & co>", "(no key)")], ["(no key)", "user-<ada & co>"])
        for text in ("answers 3", "answers 1", "thumb 3", "correction 2"):
            self.assertIn(text, texts)
        self.assertNotIn("versions of the adapter", texts)
        self.assertEqual((len(lines), dots), (4, 0))
        self.assertEqual(lines[1].count("V"), 3)  # a step for each
        for version, what, report in ((1, "rejected", '{"reason": "neighbours", "kl": 0.5}'), (2, "published", '{"reason": "", "kl": 0.004}'),
                                      (3, "rejected", '{"reason": "kl"}'), (4, "published", '{"reason": "", "kl": 0.0125}'),
                                      (2, "rolled back", '{"reason": ""}'), (5, "published", "no JSON")):
            self.put_version(version, what, report)
        texts, lines, dots = self.picture("--tenant", "user-<ada & co>")
        self.assertNotIn("(no key)", texts)
        for text in ("published 3", "rejected: neighbours 1", "rejected: kl 1", "rolled_back 1", "published, last 0.0125"):
            self.assertIn(text, texts)
        self.assertEqual((len(lines), dots), (1 + 2 + 4 + 1, 2))
        self.assertIn("nothing is kept of 'nobody'", self.weft("learn", "status", self.dir, "--tenant", "nobody", rc=1).stderr)
        for name in ("learn.db", "log/entries.jsonl"):
            with open(os.path.join(self.dir, name), "rb") as f:
                before = f.read()
            self.assertIn("written over", self.weft("learn", "status", self.dir, "--svg", os.path.join(self.dir, name), rc=1).stderr)
            with open(os.path.join(self.dir, name), "rb") as f:
                self.assertEqual(f.read(), before)
        self.weft("learn", "status", self.dir, "--svg", os.path.join(self.dir, "no", "x.svg"), rc=1)

    def test_many_tenants_have_a_picture(self):
        s = self.serve(keys=False)
        for i in range(18):
            s.post(CHAT, {"messages": user("[say One]"), "user": f"caller {i:02}"})
        self.stop(s)
        texts, lines, _ = self.picture()
        self.assertEqual((len(lines), texts[-1]), (16, "and 2 more: --tenant NAME"))


if __name__ == "__main__":
    unittest.main()
