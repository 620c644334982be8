# SPDX-License-Identifier: Apache-2.0
"""Claims about the witness log that another program checks: aics-tlog (PyPI) takes our checkpoints and key, finds the same root over the
entries for each of them, and takes our proofs; what was changed it refuses.

usage: test_witness.py build/weft    with aics_tlog, or by the Python WEFT_TLOG_PYTHON, which has it"""
import base64
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "server"))
WEFT = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""


def notes(text):
    """The signed notes that stand one behind the other."""
    out, lines = [], text.splitlines(keepends=True)
    while lines:
        end = lines.index("\n") + 1
        while end < len(lines) and lines[end].startswith("\u2014 "):
            end += 1
        out.append("".join(lines[:end]))
        del lines[:end]
    return out


class Witness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from servers import Server, user

        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.dir = os.path.join(cls.folder.name, "learned")
        server = Server([os.path.join(os.path.dirname(WEFT), "fake_server"), "--learn", cls.dir])
        for i in range(20):
            a = server.post("/v1/chat/completions", {"messages": user(f"[say {i}]")}).json
            server.post("/v1/feedback", {"request_id": a["id"], "reward": i / 20})
        server.process.terminate()
        server.process.wait()
        with open(os.path.join(cls.dir, "log", "entries.jsonl"), "rb") as f:
            cls.entries = f.read().splitlines()
        with open(os.path.join(cls.dir, "log", "checkpoints"), encoding="utf-8") as f:
            cls.notes = notes(f.read())
        with open(os.path.join(cls.dir, "log", "public"), encoding="ascii") as f:
            cls.vkey = f.read().strip()

    def test_checkpoints(self):
        from aics_tlog import MerkleTree, parse_checkpoint, parse_note, parse_vkey, verify_consistency, verify_note
        tree, key, last = MerkleTree(self.entries), parse_vkey(self.vkey), None
        for text in self.notes:
            note = parse_note(text)
            self.assertTrue(verify_note(note, [key]))
            origin, size, rest = text.split("\n", 2)
            self.assertFalse(verify_note(parse_note(f"{origin}\n{int(size) + 1}\n{rest}"), [key]))
            head = parse_checkpoint(note.text)
            self.assertEqual(head.root, tree.root(head.size))
            if last and last.size < head.size:
                self.assertTrue(verify_consistency(last.size, head.size, last.root, head.root, tree.consistency_proof(last.size, head.size)))
            last = head
        self.assertEqual(last.size, len(self.entries))

    def test_proofs(self):
        from aics_tlog import parse_checkpoint, parse_note, verify_leaf_inclusion
        for i in range(0, len(self.entries), 3):
            text = subprocess.run([WEFT, "log", "prove", self.dir, str(i)], check=True, capture_output=True, text=True).stdout
            head, checkpoint = text.split("\n\n", 1)
            lines = head.split("\n")
            self.assertEqual(lines[0], "c2sp.org/tlog-proof@v1")
            self.assertEqual(base64.b64decode(lines[1].removeprefix("extra ")), self.entries[i])
            self.assertEqual(lines[2], f"index {i}")
            proof = [base64.b64decode(h) for h in lines[3:]]
            c = parse_checkpoint(parse_note(checkpoint).text)
            self.assertTrue(verify_leaf_inclusion(self.entries[i], i, c.size, proof, c.root))
            self.assertFalse(verify_leaf_inclusion(self.entries[i] + b" ", i, c.size, proof, c.root))
            self.assertIn(json.loads(self.entries[i])["kind"], ("request", "feedback"))


if __name__ == "__main__":
    other = os.environ.get("WEFT_TLOG_PYTHON")
    if not importlib.util.find_spec("aics_tlog") and other and other != sys.executable:
        os.execv(other, [other, os.path.abspath(__file__), WEFT])
    if not importlib.util.find_spec("aics_tlog"):
        print("SKIP: no aics_tlog in this Python; pip install aics-tlog (Python 3.12 or later)")
        sys.exit(77)
    unittest.main()
