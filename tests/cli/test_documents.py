# SPDX-License-Identifier: Apache-2.0
"""Claims about README.md, CONTRIBUTING.md, models/README.md and docs/: what they tell a newcomer to type is there. Commands and their options are those of
--help, targets those of make, tests those of CTest (behind what builds them), files those of the tree, and variables of the environment those
of the source. usage: test_documents.py build/weft"""
import glob
import json
import os
import re
import subprocess
import unittest

from common import WEFT, main, weft

GENERATED = ("docs/howto/test.md", "docs/benchmarks.md", "docs/api.md")
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "models/README.md",
    *(d for d in sorted(glob.glob("docs/*.md") + glob.glob("docs/howto/*.md")) if d not in GENERATED),
]
OTHER_PROGRAMS = "curl", "openssl", "git", "printf", "cmake", "lm_eval"
COMMANDS = re.findall(r"^  ([a-z-]+)  ", weft("--help").stdout.decode(), re.M)
KINDS = {"adapter": ("info", "train", "convert", "merge"), "eval": ("logits", "documents", "perplexity", "task", "retrieval", "kv"), "key": ("new", "hash"),
         "learn": ("status", "history", "export", "forget", "teach", "consolidate", "rollback"), "log": ("verify", "prove", "check")}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def sources(*patterns):
    return "\n".join(read(p) for pattern in patterns for p in glob.glob(pattern, recursive=True) if os.path.isfile(p))


def helped(command, kind=None):
    return weft(command, *([kind] if kind else []), "--help").stdout.decode()


HELP = {(c, None): helped(c) for c in COMMANDS} | {(c, k): helped(c, k) for c, kinds in KINDS.items() for k in kinds}
OPTIONS = {
    key: set(re.findall(r"^  (-\w), --", text, re.M))
    | {"--" + o for o in re.findall(r"^  (?:-\w, |    )--([a-z0-9-]+)", text, re.M)}
    for key, text in HELP.items()
}


def code_of(document):
    """What stands in fences and between backquotes, a line each; the lines of a fence that go on behind a backslash are one."""
    text = read(document)
    for block in re.findall(r"^[ ]*```\w*\n(.*?)^[ ]*```", text, re.M | re.S):
        yield from block.replace("\\\n", " ").splitlines()
    yield from (s.replace("\n", " ") for s in re.findall(r"`([^`]+)`", re.sub(r"^[ ]*```\w*\n.*?^[ ]*```", "", text, flags=re.M | re.S)))


class Documents(unittest.TestCase):
    def test_sizes_of_schemas(self):
        """The table of sizes in docs/howto/structured-output.md has the numbers of the source, in its order."""
        said = re.search(r"^### Sizes\n(.*?)^## ", read("docs/howto/structured-output.md"), re.M | re.S).group(1)
        numbers = [int(n.replace(",", "")) for row in re.findall(r"^\|[^|]+\| ([\d,; ]+) \|$", said, re.M) for n in row.split(";")]
        grammar = "src/text/grammar/"
        where = [(grammar + f, name) for f, names in (
            ("grammar.h", "WEFT__GRAM_MAX_SOURCE WEFT__GRAM_JSON_DEPTH"), ("schema_object.c", "MAX_MEMBERS"), ("schema_merge.c", "MAX_ALTERNATIVES"),
            ("grammar.h", "WEFT__GRAM_MAX_STATES WEFT__GRAM_MAX_STATES WEFT__GRAM_MAX_EDGES WEFT__GRAM_MAX_RULES"),
            ("product.h", "WEFT__GRAM_MAX_PRODUCT WEFT__GRAM_ALL_PRODUCTS"), ("schema.c", "MAX_CONTENT"), ("schema_merge.c", "MAX_FOLLOWED"),
            ("schema_array.c", "MAX_PREFIX"), ("product.h", "WEFT__GRAM_MAX_PATTERNS"), ("schema_string.c", "MAX_HELD"),
            ("schema_count.c", "MAX_COUNTED_MEMBERS"), ("schema_object.h", "WEFT__GRAM_SCHEMA_MAX_ANY"),
            ("regex.c", "MAX_GROUPS MAX_PIECES MAX_BRANCHES"), ("regex_set.h", "WEFT__GRAM_REGEX_RANGES"), ("regex.c", "MAX_NAMED"),
            ("tables.c", "TABLE_BYTES"))
            for name in names.split()]
        values = []
        for path, name in where:
            value = re.search(rf"\b{name} = (\d+)(?: << (\d+))?\s*[,}}/ ]", read(path))
            self.assertTrue(value, (path, name))
            values.append(int(value[1]) << int(value[2] or 0))
        self.assertEqual(numbers, values)
        same = re.search(r"JSON_MAX_DEPTH (\d+)", read("src/base/json.h")), re.search(r"MAX_CHOICES = (\d+)", read(grammar + "schema_one_of.c"))
        self.assertEqual([int(m[1]) for m in same], [256, 250])

    def test_commands_and_their_options(self):
        n = 0
        texts = [(d, line) for d in DOCUMENTS for line in code_of(d)] + [
            ("--help of " + " ".join(filter(None, key)), line)
            for key, text in HELP.items()
            for line in text.splitlines()
            if line.startswith("  weft ")
        ]
        for where, line in texts:
            for said in re.split(r"[|;&]+ |\$\(", line.split("  #")[0]):
                m = re.search(r"(?:^|[ /])weft ([a-z][a-z-]*)(?: ([a-z]+)(?![\w.-]))?(.*)", said)
                if not m or re.search(r"\w\.weft|[a-z]+ weft ", said):
                    continue
                command, kind, rest = m.groups()
                with self.subTest(where=where, line=line):
                    if command in ("help", "engine"):
                        continue
                    self.assertIn(command, COMMANDS)
                    key = (command, kind if command in KINDS else None)
                    if command in KINDS:
                        self.assertIn(kind, (*KINDS[command], None))
                    for option in re.findall(r"(?<![\w-])(--?[a-z][a-z0-9-]*)", re.sub(r"\"[^\"]*\"|'[^']*'", "", rest)):
                        self.assertIn(option, OPTIONS[key] | {"--help", "-h"})
                        n += 1
        self.assertGreater(n, 100)

    def test_options_that_are_told_of(self):
        """`--option` alone is one of the program's, or of a script's."""
        known = {o for options in OPTIONS.values() for o in options} | {"--help", "--version"}
        scripts = sources(
            "scripts/*",
            "bench/*",
            "tests/*/run",
            "tests/material/*",
            "tests/peers/*",
            "tests/cli/*.py",
            "tests/server/*.py",
            "Makefile",
            "cmake/*",
            "CMakeLists.txt",
        )
        others = {"--preset", "--test-dir", "--build", "--target", "--output-on-failure", "--interleave", "--cflags", "--libs", "--static"}
        for document in DOCUMENTS:
            for line in code_of(document):
                if line.startswith(OTHER_PROGRAMS):
                    continue
                for option in re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]+)", line):
                    if (
                        option not in known | others
                        and f'{option}"' not in scripts
                        and f"{option}'" not in scripts
                        and option + ")" not in scripts
                        and option + " " not in scripts
                    ):
                        self.fail(f"{document}: {option}")

    def test_targets_of_make(self):
        listed = set(
            re.findall(
                r"[a-z][a-z-]*",
                " ".join(re.findall(r"^\t@echo 'make ((?:[a-z-]+ \| )*[a-z-]+)", read("Makefile"), re.M)),
            )
        ) | {"format-check", "help"}
        self.assertGreater(len(listed), 25)
        for document in DOCUMENTS:
            for line in code_of(document):
                for target in re.findall(r"^make ([a-z][a-z-]*[a-z])(?!-\*)\b(?!-)", line):
                    self.assertIn(target, listed, document)

    def test_files(self):
        """Paths into the tree; NAME and * stand for any."""
        for document in DOCUMENTS:
            for line in code_of(document):
                for path in re.findall(r"(?<![\w./~-])((?:src|include|cli|docs|tests|scripts|bench|cmake|models|plugins|corpus)/[\w./*-]+)(?![\w./*{-])", line):
                    path = path.rstrip(".,:")
                    if path.startswith("models/") and "material" in document:  # of build/material
                        continue
                    if re.search(r"NAME|ROOM|ARCH|VERSION|TIER|TYPE|22-kv|\bNN|run/|FORMAT|TOPIC", path) or "{" in line and path.endswith("/"):
                        continue
                    self.assertTrue(
                        glob.glob(path)
                        or glob.glob(os.path.join("docs", path))
                        or glob.glob("src/" + path)
                        or glob.glob(path + ".*"),
                        f"{document}: {path}",
                    )

    def test_tests(self):
        """A line that runs CTest finds tests there, and stands behind one that builds them: make alone builds none."""
        folder = os.path.dirname(WEFT[-1])
        if not os.path.exists(os.path.join(folder, "CTestTestfile.cmake")):
            self.skipTest("the program does not lie in a build folder with tests")
        names = re.findall(r"Test +#\d+: (\S+)", subprocess.run(["ctest", "--test-dir", folder, "-N"], capture_output=True, text=True, check=True).stdout)
        n = 0
        for document in DOCUMENTS:
            before = ""
            for line in code_of(document):
                for pattern in re.findall(r"\bctest .*-R '?([^' ]+)'?", line):
                    n += 1
                    self.assertTrue(any(re.search(pattern, name) for name in names), f"{document}: {line}")
                    self.assertIn("cmake --build", before + line, f"{document}: {line}")
                before += line
        self.assertGreaterEqual(n, 3)

    def test_variables_of_the_environment(self):
        """Those that the source reads stand in docs/howto/environment.md and are read; the ones of the program's use in its --help, too."""
        source = sources("src/**/*.[ch]", "cli/*.[ch]", "plugins/**/*.c")
        read_there = set(re.findall(r'(?:getenv|says|number_from)\("([A-Z_]+)"', source)) | set(
            re.findall(r'"(WEFT_[A-Z_]+)"', source)
        ) - {"WEFT_BACKEND_ENTRY"}
        table = set(re.findall(r"`([A-Z_]+)`", "\n".join(re.findall(r"^\|([^|]+)\|", read("docs/howto/environment.md"), re.M))))
        self.assertEqual(table, read_there)
        helps = weft("--help").stdout.decode() + HELP["pull", None] + HELP["chat", None] + HELP["serve", None]
        for name in read_there - {"HOME", "WEFT_PIN", "WEFT_TEAM", "TERM", "NO_COLOR", "XDG_STATE_HOME"}:
            self.assertIn(name, helps)
        documents = "\n".join(map(read, DOCUMENTS + ["docs/howto/test.md"]))
        scripts = sources("scripts/*", "tests/**/*.py", "tests/**/*.[ch]", "tests/*/run", "bench/*", "Makefile")
        for name in set(re.findall(r'(?:getenv\(|environ\.get\(|environ\[)"(WEFT_[A-Z_]+)"', scripts)) - {"WEFT_FAKE_HOLD", "WEFT_EMULATOR"}:
            self.assertTrue(name in documents or f"# {name}" in scripts or re.search(rf"\b{name}\b.*[:=]", scripts), name)

    def test_the_openapi_document_has_every_path(self):
        """That serve.md calls, and the other way round for those that a model of text has."""
        paths = json.loads(read("docs/openapi.json"))["paths"]
        for path in re.findall(r"localhost:8080(/[\w/.-]+)", read("docs/howto/serve.md")):
            self.assertTrue(any(re.fullmatch(re.sub(r"{\w+}", "[^/]+", p), path) for p in paths), path)

    def test_defaults_of_sampling(self):
        """The help of the commands, the public header and the fields of /completion name the same ones."""
        fields = json.loads(read("docs/openapi.json"))["components"]["schemas"]["CompletionRequest"]["properties"]
        header = sources("include/weft/*.h")
        for option, field in (("temp", "temperature"), ("top-k", "top_k"), ("top-p", "top_p"), ("min-p", "min_p"), ("repeat-penalty", "repeat_penalty"),
                              ("presence-penalty", "presence_penalty"), ("frequency-penalty", "frequency_penalty"), ("penalty-last-n", "repeat_last_n")):
            for command in ("run", "chat", "compare")[:3 if option == "temp" else 2]:
                said = re.search(rf"^ +--{option} .*\(([\d.]+)\)$", HELP[command, None], re.M)
                self.assertTrue(said and float(said.group(1)) == fields[field]["default"], (command, option))
            said = re.search(rf"\b{option.replace('-', '_')}\w*; +/\*.*default ([\d.]+) \*/", header)
            if said or not option.endswith("penalty"):
                self.assertEqual(float(said.group(1)), fields[field]["default"], option)


if __name__ == "__main__":
    main()
