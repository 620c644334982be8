# SPDX-License-Identifier: Apache-2.0
"""docs/api.md is what the headers give, each public function has a contract there, and what is stale or silent is found. usage: test_api.py"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def reference(*args):
    p = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "api-reference"), *args], capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr


class Api(unittest.TestCase):
    def test_the_reference_is_current_and_complete(self):
        self.assertEqual(reference("--check"), (0, "", ""))
        names = reference("--functions")[1].split()
        self.assertGreater(len(names), 100)
        with open(os.path.join(ROOT, "docs", "api.md"), encoding="utf-8") as f:
            text = f.read()
        for name in names:
            self.assertEqual(text.count(f"\n#### {name}\n"), 1, name)

    def test_what_is_stale_or_silent_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("include", "docs"):
                shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name))
            self.assertEqual(reference("--root", folder, "--check"), (0, "", ""))
            path = os.path.join(folder, "include", "weft", "hub.h")
            with open(path, encoding="utf-8") as f:
                text = f.read()

            def with_text(text):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                return reference("--root", folder, "--check")

            code, _, said = with_text(text.replace("in the cache, sorted by", "in the cache by"))
            self.assertEqual((code, said.count("\n")), (1, 1), said)
            self.assertIn("scripts/api-reference writes it", said)
            code, _, said = with_text(text.replace("#ifdef __cplusplus\n}", "WEFT_API void weft_pulled_free(void);\n\n#ifdef __cplusplus\n}"))
            self.assertEqual(code, 1)
            self.assertIn("include/weft/hub.h: weft_pulled_free has no contract", said)
            self.assertEqual(with_text(text), (0, "", ""))

    def test_a_header_that_is_not_listed_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(ROOT, "include"), os.path.join(folder, "include"))
            open(os.path.join(folder, "include", "weft", "further.h"), "w").close()
            code, _, said = reference("--root", folder, "--check")
            self.assertEqual(code, 1)
            self.assertIn("further", said)


if __name__ == "__main__":
    unittest.main()
