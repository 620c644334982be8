# SPDX-License-Identifier: Apache-2.0
"""Claims about tests/faults: its patches apply to this tree, and its runner calls a fault found only where the tests that are to find it
pass without it and fail with it. The latter in a project of one file, with CMake and CTest as they are. usage: test_faults.py"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = os.path.join("tests", "faults", "run")
PATIENCE = 600  # seconds that end a hang

SOURCE = "int sum(int a, int b);\nint sum(int a, int b)\n{\n    return a + b;\n}\n"
MAIN = "int sum(int a, int b);\nstatic int idle;\nint main(void)\n{\n    int s = sum(2, 2);\n    return s == 4 ? 0 : s == 5 ? 77 : 1;\n}\n"
# (`idle` is a warning without a fault: it is no fault's.)
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES C)
enable_testing()
add_executable(test_sum src/base/sum.c main.c)
target_compile_options(test_sum PRIVATE -Wall -Wextra)
add_test(NAME sum COMMAND test_sum)
add_test(NAME "sum again" COMMAND test_sum)
set_tests_properties(sum PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME broken COMMAND test_sum)
set_tests_properties(broken PROPERTIES WILL_FAIL TRUE)
add_test(NAME sweep COMMAND test_sum)
set_tests_properties(sweep PROPERTIES LABELS "large;long")
"""
PRESETS = """{"version": 6,
"configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build"}],
"buildPresets": [{"name": "release", "configurePreset": "release"}],
"testPresets": [{"name": "release", "configurePreset": "release"}]}
"""
# Faults, by name: what stands in the place of a + b, who is to find it, and what the runner says.
FAULTS = {
    "01-base-found": ("a - b", "sum", "found    01-base-found: release sum"),
    "02-base-harmless": ("b + a", "sum", "missed   02-base-harmless: sum passed"),
    "03-base-skipped": ("a + b + 1", "sum", "missed   03-base-skipped: sum skipped"),
    "04-base-no-code": ("a +", "sum", "missed   04-base-no-code: it does not compile"),
    "05-base-warns": ("a + (b == b) - (b = 1)", "sum", "missed   05-base-warns: it compiles with a warning"),
    "06-base-no-test": ("a - b", "product", "missed   06-base-no-test: without it, product is none that make test runs"),
    "07-base-broken": ("a - b", "broken", "missed   07-base-broken: without it, broken is failed"),
    "08-base-half": ("a - b", "sum broken", "missed   08-base-half: without it, broken is failed"),
    "09-text-other-room": ("a - b", "sum", "missed   09-text-other-room: it is not a change of files of src/text/ alone"),
    "11-base-long": ("a - b", "sweep", "missed   11-base-long: without it, sweep is none that make test runs"),
    "10-base-after": ("a - b - 1", "sum", "found    10-base-after: release sum"),  # those before it were taken back
}


def patch(what, finders, line="    return a + b;"):
    return (f"Made for a test.\nFound-by: release {finders}\n\ndiff --git a/src/base/sum.c b/src/base/sum.c\n--- a/src/base/sum.c\n"
            f"+++ b/src/base/sum.c\n@@ -1,5 +1,5 @@\n int sum(int a, int b);\n int sum(int a, int b)\n {{\n-{line}\n"
            f"+    return {what};\n }}\n")


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name, text in (("src/base/sum.c", SOURCE), ("main.c", MAIN), ("CMakeLists.txt", CMAKE), ("CMakePresets.json", PRESETS),
                           (".gitignore", "/build/\n")):
            self.write(name, text)
        os.makedirs(os.path.join(self.folder.name, "tests", "faults"))
        shutil.copy(os.path.join(ROOT, RUN), os.path.join(self.folder.name, RUN))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        subprocess.run(["git", "init", "-q"], cwd=self.folder.name, env=self.env, check=True)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def run_faults(self, *args):
        p = subprocess.run([sys.executable, RUN, *args], cwd=self.folder.name, env=self.env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        return p.returncode, p.stdout

    def test_found_is_passed_without_and_failed_with_it(self):
        for name, (what, finders, _) in FAULTS.items():
            self.write(f"tests/faults/{name}.patch", patch(what, finders))
        self.write("tests/faults/12-base-stale.patch", patch("a - b", "sum", "    return b + a;"))
        status, output = self.run_faults()
        for _, _, says in FAULTS.values():
            self.assertIn(says, output)
        self.assertIn("missed   12-base-stale: it no longer applies", output)
        self.assertEqual(output.splitlines()[-1], "2 found, 10 missed", output)
        self.assertEqual(status, 1)
        status, output = self.run_faults("01", "10-base")
        self.assertEqual((status, output.splitlines()[-1]), (0, "2 found, 0 missed"), output)
        self.assertEqual(self.run_faults("99")[0], 1)

    def test_what_is_tried_is_the_tree_as_it_is(self):
        self.write("tests/faults/01-base-found.patch", patch("a - b", "sum"))
        self.assertEqual(self.run_faults()[0], 0)
        self.write("main.c", MAIN.replace("sum(2, 2)", "sum(4, 0)"))  # a test that the fault passes, and nobody has committed
        status, output = self.run_faults()
        self.assertEqual((status, output.splitlines()[-1]), (1, "0 found, 1 missed"), output)

    def test_nothing_to_try_is_no_success(self):
        self.assertEqual(self.run_faults()[0], 2)

    def test_a_stale_patch_is_named(self):
        self.write("tests/faults/01-base-found.patch", patch("a - b", "sum"))
        self.assertEqual(self.run_faults("--check")[0], 0)
        self.write("src/base/sum.c", SOURCE.replace("a + b", "b + a"))
        status, output = self.run_faults("--check")
        self.assertEqual(status, 1)
        self.assertIn("01-base-found: it no longer applies", output)

    def test_ours_apply(self):
        p = subprocess.run([sys.executable, RUN, "--check"], cwd=ROOT, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, p.stdout)


if __name__ == "__main__":
    if not shutil.which("git"):
        print("skipped: no git")
        sys.exit(77)
    unittest.main()
