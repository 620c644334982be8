# SPDX-License-Identifier: Apache-2.0
"""Functions that docs/design.md and its neighbours name are where they say, and what moved or is gone is found. usage: test_design.py"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

DOCUMENTS = ("design.md", "glossary.md", "limits.md", "tuning.md", "http.md",
             *(f"howto/add-{what}.md" for what in ("architecture", "backend", "endpoint", "format", "kernel")))
# A product by way of a table, a thread's walk and a step: seven functions, one of which is called twice, one never.
TREE = {
    "src/graph/plan.c": (
        "int check(int x)\n{\n    return x;\n}\n\nint weft__plan_run(int x)\n{\n    if (check(x)) return 1; /* unused("
        " */\n    return api->run(x);\n}\n"
    ),
    "src/backend/cpu/run.c": (
        "static void walk(int t)\n{\n    s->run(t);\n}\n\nint weft__cpu_run(int x)\n{\n    pool(x, walk);\n    return"
        " 0;\n}\n"
    ),
    "src/backend/cpu/linear.c": (
        "static void multiply(int t)\n{\n    weft__cpu_multiply(t);\n}\n\nstatic void run_linear(int t)\n{\n   "
        " multiply(t);\n    multiply(t);\n}\n\nstatic int unused(void)\n{\n    return 0;\n}\n"
    ),
    "src/backend/cpu/cpu.h": "static inline void weft__cpu_multiply(int t)\n{\n    mm->run(t);\n}\n",
    "cli/main.c": "",
    "include/weft/weft.h": "",
    "plugins/x.c": "",
}
DESIGN = "`run.c` `weft__cpu_run`, `walk` and `linear.c` `multiply`; <!-- scripts/check-design --product -->**7** functions\n"


def check(root, *args):
    p = subprocess.run([sys.executable, "scripts/check-design", "--root", root, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return p.returncode, p.stdout + p.stderr


class Design(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def small_tree(self):
        for name, text in TREE.items():
            self.write(name, text)
        for name in DOCUMENTS:
            self.write("docs/" + name, DESIGN if name == "design.md" else "")

    def design(self):
        with open(os.path.join(self.root, "docs/design.md"), encoding="utf-8") as f:
            return f.read()

    def test_the_tree(self):
        status, said = check(".")
        self.assertEqual(status, 0, said)
        self.assertGreater(int(re.search(r"(\d+) functions", said).group(1)), 100)

    def test_a_function_that_is_gone(self):
        for folder in ("src", "cli", "include", "plugins"):
            os.symlink(os.path.abspath(folder), os.path.join(self.root, folder))
        os.symlink(os.path.abspath("tests"), os.path.join(self.root, "tests"))
        shutil.copytree("docs", os.path.join(self.root, "docs"))
        with open("docs/design.md", encoding="utf-8") as f:
            text = f.read()
        self.write("docs/design.md", text + "\n`graph/plan.c` `weft__plan_runs` and `no_such_file.c` `walk`, then `no_such_word` and `gone.h`.\n")
        status, said = check(self.root)
        self.assertEqual(status, 1)
        self.assertEqual(
            [re.search(r"(\w+)`: (.*?)(;|$)", line).groups()[:2] for line in said.splitlines()],
            [
                ("weft__plan_runs", "it defines no such thing"),
                ("walk", "there is no such file"),
                ("no_such_word", "no source has such a word"),
                ("h", "there is no such file"),
            ],
        )

    def test_the_count_of_one_product(self):
        self.small_tree()
        self.assertEqual(check(self.root)[0], 0, check(self.root)[1])
        self.assertIn("7 functions in 4 files", check(self.root, "--product")[1])
        self.write(
            "src/graph/plan.c",
            TREE["src/graph/plan.c"]
            .replace("return x;", "return 1;\n}\n\nint more(int x)\n{\n    return check(x);", 1)
            .replace("if (check(", "if (more("),
        )
        status, said = check(self.root)
        self.assertEqual((status, "8 functions can run" in said), (1, True), said)
        self.assertEqual(check(self.root, "--fix")[0], 0)
        self.assertIn("**8** functions", self.design())

    def test_the_parts_of_one_product(self):
        self.small_tree()
        part = "<!-- scripts/check-design --product {} -->**{}**\n".format
        self.write("docs/design.md", DESIGN + part("graph/plan.c", 2) + part("cpu/run.c linear.c cpu.h", 5))
        self.assertEqual(check(self.root)[0], 0, check(self.root)[1])
        self.write("docs/design.md", DESIGN + part("graph/plan.c", 3) + part("run.c gone.c", 2))
        status, said = check(self.root)
        self.assertEqual(status, 1)
        for words in ("2 functions of graph/plan.c, not as many", "no file gone.c on the way", "cpu/linear.c stands in 0 parts"):
            self.assertIn(words, said)
        self.write("docs/design.md", DESIGN + part("graph/plan.c", 3) + part("plan.c run.c linear.c cpu.h", 7))
        self.assertIn("graph/plan.c stands in 2 parts", check(self.root)[1])
        self.assertEqual(check(self.root, "--fix")[0], 1)
        self.assertIn("graph/plan.c -->**2**", self.design())

    def test_what_moved_is_mended(self):
        self.small_tree()
        os.rename(os.path.join(self.root, "src/backend/cpu/linear.c"), os.path.join(self.root, "src/backend/cpu/product.c"))
        status, said = check(self.root)
        self.assertEqual((status, "it is in cpu/product.c" in said), (1, True), said)
        self.assertEqual(check(self.root, "--fix")[0], 0)
        self.assertEqual(self.design(), DESIGN.replace("linear.c", "cpu/product.c"))

    def test_a_way_that_is_lost(self):
        self.small_tree()
        self.write("src/backend/cpu/cpu.h", "static inline void weft__cpu_multiply(int t)\n{\n}\n")
        status, said = check(self.root)
        self.assertEqual((status, "no kernel is reached" in said), (1, True), said)


if __name__ == "__main__":
    unittest.main()
