# SPDX-License-Identifier: Apache-2.0
"""Claims about what was pulled: weft list, weft rm, links and damage in the cache, and names of pulled models as models.

usage: test_pull_cache.py build/weft"""
import json
import os
import shutil
import tempfile

from common import PATIENCE, STORIES, WEFT, main, needs_models, run
from pull_case import MODEL, Case


class Cache(Case):
    repos = {"owner/name": {"a-Q4_0.gguf": MODEL, "sub/b-Q8_0.gguf": MODEL}, "owner/second": {"c.gguf": MODEL}}

    def test_list(self):
        self.assertEqual((self.weft("list").returncode, self.weft("list").stdout), (0, b""))
        self.assertEqual(json.loads(self.weft("list", "--json").stdout), [])
        for name in ("owner/second", "owner/name:q8_0", "owner/name:q4_0"):
            self.pulled(name, MODEL)
        listed = json.loads(self.weft("list", "--json").stdout)
        self.assertEqual([m["name"] for m in listed], ["owner/name:a-Q4_0.gguf", "owner/name:sub/b-Q8_0.gguf",
                                                       "owner/second:c.gguf"])
        for m in listed:
            self.assertTrue(os.path.samefile(m["path"], self.place(*m["name"].replace(":", "/").split("/"))))
            self.assertEqual(m["bytes"], len(MODEL))
        self.assertEqual(self.weft("list").stdout.count(b"complete"), 3)

    def test_rm(self):
        for name in ("owner/second", "owner/name:q8_0", "owner/name:q4_0"):
            self.pulled(name, MODEL)
        self.assertEqual(self.weft("rm", "owner/name:Q8_0").returncode, 0)
        self.assertEqual(self.files(), ["owner/name/a-Q4_0.gguf", "owner/second/c.gguf"])
        self.assertFalse(os.path.exists(self.place("owner", "name", "sub")))
        self.assertEqual(self.weft("rm", "owner/name:a-Q4_0.gguf").returncode, 0)
        self.assertFalse(os.path.exists(self.place("owner", "name")))
        p = self.weft("rm", "owner/name")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"was not pulled", p.stderr)
        self.assertEqual(self.weft("rm", "owner/second").returncode, 0)
        self.assertEqual(os.listdir(self.place()), [])

    def test_rm_of_what_is_not_there(self):
        self.pulled("owner/second", MODEL)
        self.assertEqual(self.weft("rm", "owner/second:Q2_K").returncode, 1)
        self.assertEqual(self.files(), ["owner/second/c.gguf"])

    def test_rm_stays_in_the_cache(self):
        """Symbolic links in the cache are removed as links, or refused; what they lead to stays."""
        with tempfile.TemporaryDirectory() as outside:
            precious = os.path.join(outside, "precious.gguf")
            with open(precious, "wb") as f:
                f.write(b"x")
            self.pulled("owner/second", MODEL)
            os.symlink(outside, self.place("owner", "second", "dir"))
            os.symlink(precious, self.place("owner", "second", "link.gguf"))
            self.assertEqual(self.weft("rm", "owner/second:link.gguf").returncode, 1)
            self.assertEqual(self.weft("rm", "owner/second:dir/precious.gguf").returncode, 1)
            self.assertEqual(self.weft("rm", "owner/second").returncode, 0)
            self.assertTrue(os.path.exists(precious))
            os.makedirs(self.place("owner"), exist_ok=True)
            os.symlink(outside, self.place("owner", "linked"))
            p = self.weft("rm", "owner/linked")
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"symbolic link", p.stderr)
            os.symlink(self.place("owner"), self.place("alias"))
            self.assertEqual(self.weft("rm", "alias/linked").returncode, 1)
            self.assertTrue(os.path.exists(precious))
            self.server.repos["owner/linked"] = {"precious.gguf": MODEL}
            self.assertEqual(self.weft("pull", "owner/linked").returncode, 1)
            with open(precious, "rb") as f:
                self.assertEqual(f.read(), b"x")

    def test_pull_does_not_write_through_a_link(self):
        with tempfile.TemporaryDirectory() as outside:
            precious = os.path.join(outside, "precious")
            with open(precious, "wb") as f:
                f.write(b"x")
            os.makedirs(self.place("owner", "second"))
            os.symlink(precious, self.place("owner", "second", "c.gguf.part"))
            self.assertEqual(self.weft("pull", "owner/second").returncode, 1)
            os.makedirs(self.place("owner", "second"), exist_ok=True)
            os.symlink(precious, self.place("owner", "second", "c.gguf"))
            self.pulled("owner/second", MODEL)  # the link is replaced
            os.makedirs(self.place("owner", "name"))
            os.symlink(outside, self.place("owner", "name", "sub"))
            self.assertEqual(self.weft("pull", "owner/name:q8_0").returncode, 1)
            self.assertEqual(os.listdir(outside), ["precious"])
            with open(precious, "rb") as f:
                self.assertEqual(f.read(), b"x")

    def test_damaged_records_are_no_hindrance(self):
        self.pulled("owner/second", MODEL)
        for text in (b"", b"{", b"[]", b'{"files": 5, "folder": {}}', b'{"files": {"c.gguf": 1}, "folder": ["../../x", 5]}',
                     b"\xff"):
            with open(self.place("owner", "second", ".weft.json"), "wb") as f:
                f.write(text)
            self.assertEqual(self.weft("list").returncode, 0)
            self.pulled("owner/second", MODEL)


@needs_models
class Use(Case):
    def setUp(self):
        super().setUp()
        with open(STORIES, "rb") as f:
            self.server.repos["owner/stories"] = {"stories-Q8_0.gguf": f.read()}

    def test_pulled_name_is_a_model(self):
        p = self.weft("info", "owner/stories")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"weft pull", p.stderr)
        self.assertEqual(self.weft("pull", "owner/stories").returncode, 0)
        for name in ("owner/stories", "owner/stories:q8_0", "owner/stories:stories-Q8_0.gguf"):
            p = self.weft("tokenize", name, "Once upon a time")
            self.assertEqual((p.returncode, p.stdout), (0, self.weft("tokenize", STORIES, "Once upon a time").stdout), p.stderr)
        self.assertEqual(self.weft("info", "owner/stories:Q4_0").returncode, 1)
        p = self.weft("run", "owner/stories", "Once", "-n", "4", "--temp", "0")
        self.assertEqual(p.returncode, 0, p.stderr)
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        text, matrix, out = (os.path.join(folder, name) for name in ("text", "matrix", "out.gguf"))
        with open(text, "w") as f:
            f.write("Once upon a time there was a little girl. " * 8)
        for command in (["imatrix", "owner/stories", "-f", text, "-o", matrix, "-c", "16"], ["eval", "perplexity", "owner/stories", "-f", text, "-c", "16"],
                        ["quantize", "owner/stories", out, "Q4_0", "--imatrix", matrix]):
            p = self.weft(*command)
            self.assertEqual(p.returncode, 0, p.stderr)

    def test_an_existing_file_comes_first(self):
        self.assertEqual(self.weft("pull", "owner/stories").returncode, 0)
        with tempfile.TemporaryDirectory() as d:
            os.makedirs(d + "/owner")
            with open(d + "/owner/stories", "wb") as f:
                f.write(b"no model")
            p = run(WEFT + ["info", "owner/stories"], cwd=d, env=self.environment(), timeout=PATIENCE)
            self.assertEqual(p.returncode, 1)


if __name__ == "__main__":
    main()
