# SPDX-License-Identifier: Apache-2.0
"""Pages of measurements are what bench/render makes of bench/history, and a figure that is edited by hand is found. usage: test_render.py"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

FILES = ["README.md", "docs/benchmarks.md", "docs/peers.svg", "docs/streams.svg", "docs/shares.svg"]


def check(root):
    p = subprocess.run([sys.executable, "bench/render", "--check", "--root", root], stderr=subprocess.PIPE, text=True)
    return p.returncode, p.stderr


class Render(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        shutil.copytree("bench/history", os.path.join(self.root, "bench/history"))
        os.mkdir(os.path.join(self.root, "docs"))
        for name in FILES:
            shutil.copy(name, os.path.join(self.root, name))

    def edit(self, name, change):
        path = os.path.join(self.root, name)
        with open(path, encoding="utf-8") as f:
            old = f.read()
        new = change(old)
        self.assertNotEqual(old, new, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(new)

    def test_the_tree_is_what_its_records_make(self):
        self.assertEqual(check("."), (0, ""))

    def test_a_figure_that_is_edited_by_hand(self):
        places = {
            "README.md": r"(\| prompt of 512 \| )\d+",
            "docs/benchmarks.md": r"(\| generation \| )\d+",
            "docs/peers.svg": r"(width=\"6)0",
            "docs/streams.svg": r"(width=\"6)0",
            "docs/shares.svg": r"(width=\"6)0",
        }
        for name, pattern in places.items():
            with self.subTest(name=name):
                self.setUp()
                self.edit(name, lambda text: re.sub(pattern, r"\g<1>9", text, count=1))
                status, said = check(self.root)
                self.assertEqual(status, 1)
                self.assertEqual([line.split(" ")[0] for line in said.splitlines()], [name])

    def test_a_figure_in_the_prose_of_the_readme(self):
        for figure in ("99 %", "41 GB/s", "2.5 times", "120 tokens/s"):
            self.setUp()
            self.edit("README.md", lambda text: text.replace("\n## Documents", f"\nIt reaches {figure} here.\n\n## Documents"))
            status, said = check(self.root)
            self.assertEqual(status, 1)
            self.assertIn(figure, said)

    def test_a_record_that_changes(self):
        path = "bench/history/peers/2026-11-26-zen3-llama.cpp.json"
        self.edit(path, lambda text: json.dumps({**json.loads(text), "rows": [{**r, "ratio": 9.5} for r in json.loads(text)["rows"]]}))
        status, said = check(self.root)
        self.assertEqual(status, 1)
        self.assertEqual({line.split(" ")[0] for line in said.splitlines()}, {"README.md", "docs/benchmarks.md", "docs/peers.svg"})

    def test_records_name_what_makes_them_comparable(self):
        n = 0
        for where, _, names in os.walk("bench/history/peers"):
            for name in names:
                with open(os.path.join(where, name), encoding="utf-8") as f:
                    record = json.load(f)
                n += 1
                for key in ("date", "processor", "tier", "commit", "recorded_in", "tool", "model", "type", "threads", "peer", "rows"):
                    self.assertIn(key, record, name)
                self.assertTrue({"name", "version", "build"} <= record["peer"].keys(), name)
                for row in record["rows"]:
                    self.assertTrue({"test", "weft", "peer", "ratio", "low", "high", "rounds"} <= row.keys(), name)
                    if row["low"] is not None:
                        self.assertTrue(row["low"] <= row["ratio"] <= row["high"], name)
        self.assertGreater(n, 10)

    def test_drawings_are_drawings(self):
        for name in FILES[2:]:
            root = xml.dom.minidom.parse(name).documentElement
            self.assertEqual(root.tagName, "svg")
            self.assertIn("prefers-color-scheme:dark", root.toxml())

    def test_the_readme_is_short(self):
        with open("README.md", encoding="utf-8") as f:
            text = f.read()
        self.assertLessEqual(len(text.splitlines()), 110)
        self.assertLessEqual(len(text.encode()), 8192)


if __name__ == "__main__":
    unittest.main()
