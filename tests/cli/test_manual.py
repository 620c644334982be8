# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions have every command and option that --help has, and what made for them reads them: man's formatter without a warning,
each shell its script. usage: test_manual.py build/weft"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from common import EMULATED, leave_out, main, weft

COMMANDS = re.findall(r"^  ([a-z-]+)  ", weft("--help").stdout.decode(), re.M)
KINDS = {c: re.findall(r"^  ([a-z-]+)  ", weft(c, "--help").stdout.decode(), re.M) for c in ("adapter", "eval", "key", "learn", "log")}
# Where zsh's own functions are not loaded: what they were asked for.
ZSH = """
compdef() { }
_describe() { print -l -- "${(@P)@[-1]}" }
_arguments() { print -l -- "$@" }
source $1
words=(${(s: :)2}) CURRENT=$3
_weft
"""


def helped(*command):
    """Options that --help lists, as (letter or "", name, value or "")."""
    return re.findall(r"^  (?:-(\w), |    )--([a-z0-9-]+)(?: (\S+))?", weft(*command, "--help").stdout.decode(), re.M)


def all_commands():
    for c in COMMANDS:
        yield from ((c, k) for k in KINDS[c]) if c in KINDS else ((c,),)


@leave_out(EMULATED, "pages are the same for every processor")
class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weft-manual-")
        cls.addClassCleanup(cls.folder.cleanup)
        p = weft("manual", os.path.join(cls.folder.name, "man1"))
        assert p.returncode == 0, p.stderr

    def page(self, *command):
        with open(os.path.join(self.folder.name, "man1", "-".join(("weft", *command)) + ".1")) as f:
            return f.read()

    def test_each_command_has_a_page_with_its_options(self):
        names = {"-".join(("weft", *c)) + ".1" for c in all_commands()} | {f"weft-{c}.1" for c in KINDS} | {"weft.1"}
        self.assertGreater(len(names), 25)
        self.assertEqual(set(os.listdir(os.path.join(self.folder.name, "man1"))), names)
        first = self.page()
        for command in all_commands():
            page = self.page(*command).replace("\\-", "-")
            self.assertIn(".BR weft\\-" + "\\-".join(command).replace("-tok", "\\-tok") + " (1)", first)
            for letter, name, value in helped(*command):
                self.assertIn((f"\\fB-{letter}\\fR, " if letter else "") + f"\\fB--{name}\\fR" + (f" \\fI{value}\\fR" if value and letter != "h" else ""), page)

    def test_a_command_with_kinds_has_a_page_that_names_theirs(self):
        for command, kinds in KINDS.items():
            page = self.page(command).replace("\\-", "-")
            self.assertGreater(len(kinds), 1)
            self.assertIn(f".BR weft\\-{command} (1)", self.page())
            self.assertEqual(re.findall(r"^\.BR weft-(\S+) \(1\)", page.split(".SH SEE ALSO")[1], re.M), [f"{command}-{k}" for k in kinds])
            self.assertEqual(re.findall(r"^\.B ([a-z-]+)$", page.split(".SH KINDS")[1], re.M), kinds)

    def test_it_formats_without_a_warning(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        for name in os.listdir(os.path.join(self.folder.name, "man1")):
            p = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-z", os.path.join(self.folder.name, "man1", name)], capture_output=True, timeout=60)
            self.assertEqual((p.returncode, p.stderr), (0, b""), name)

    def test_a_folder_that_cannot_be_is_named(self):
        p = weft("manual", "/dev/null/man1")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"/dev/null/man1", p.stderr)


# What an option takes that has words of its own; of a number there are none, and no files.
VALUES = {"serve --overflow": {"stop", "shift"}, "serve --adapter-type": {"auto", "q8_0", "q4_0", "bf16", "f32"}, "serve --chunk": {"auto"},
          "run --spec": {"off", "auto", "suffix", "draft"}, "run --kv-type": {"f16", "f32", "bf16", "f8", "q8", "q4"},
          "run --rope-scaling": {"none", "linear", "yarn"}, "run --ctx": set(), "run -c": set(), "run --temp": set(), "run --seed": set()}


@leave_out(EMULATED, "scripts are the same for every processor")
class Completion(unittest.TestCase):
    def script(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"no {shell}")
        f = tempfile.NamedTemporaryFile("wb", suffix="." + shell)
        self.addCleanup(f.close)
        p = weft("completion", shell)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        f.write(p.stdout)
        f.flush()
        return f.name

    def said(self, *command):
        p = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout

    def bash(self, script, *words):
        return self.said("bash", "-uc", 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weft; printf "%s\\n" "${COMPREPLY[@]}"', "-",
                         script, "weft", *words).split()

    def test_bash(self):
        script = self.script("bash")
        self.assertEqual(set(self.bash(script, "")), set(COMMANDS) | {"help", "--help", "--version"})
        self.assertEqual(self.bash(script, "qua"), ["quantize"])
        self.assertEqual(set(self.bash(script, "adapter", "")), set(KINDS["adapter"]) | {"--help"})
        for command in all_commands():
            self.assertEqual(set(self.bash(script, *command, "--")), {"--" + name for _, name, _ in helped(*command)}, command)
        self.assertEqual(self.bash(script, "run", "--grammar", "READ"), ["README.md"])
        self.assertEqual(self.bash(script, "run", "READ"), ["README.md"])
        self.assertEqual(self.bash(script, "completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.bash(script, "completion", "z"), ["zsh"])
        for words, values in VALUES.items():
            self.assertEqual(set(self.bash(script, *words.split(), "")), values, words)
        self.assertEqual(self.bash(script, "serve", "x", "--overflow", "sh"), ["shift"])

    def test_zsh(self):
        script = self.script("zsh")

        def zsh(words):
            return self.said("zsh", "-fc", ZSH, "-", script, words, str(len(words.split(" "))))

        self.assertEqual({line.split(":")[0] for line in zsh("weft r").splitlines()}, set(COMMANDS) | {"help"})
        self.assertEqual({line.split(":")[0] for line in zsh("weft eval x").splitlines()}, set(KINDS["eval"]))
        self.assertIn(":word:(bash zsh fish)", zsh("weft completion x").splitlines())
        words = r":.*:(_files| |\([\w .-]+\))"
        for command in all_commands():
            given = zsh("weft " + " ".join(command) + " -")
            for _, name, value in helped(*command):
                self.assertRegex(given, rf"(?m)^(\([^)]*\)|\*)?--{name}\[[^\n]+\]{words if value and name != 'help' else ''}$")

        for line, values in VALUES.items():
            command, option = line.split()
            given = zsh(f"weft {command} -")
            if option != "-c":
                self.assertRegex(given, rf"(?m)^(\([^)]*\))?{option}\[[^\n]+\]:[^\n]*:")
                said = next(x for x in given.splitlines() if re.match(rf"(\([^)]*\))?{option}\[", x)).rpartition(":")[2]
                self.assertEqual((set(said.strip("() ").split()), said != "_files"), (values, True), line)

    def test_fish(self):
        script = self.script("fish")

        def fish(words):
            return {line.split("\t")[0] for line in self.said("fish", "-N", "-c", f"source {script}; complete -C '{words}'").splitlines()}

        self.assertLessEqual(set(COMMANDS), fish("weft "))
        self.assertLessEqual(set(KINDS["adapter"]), fish("weft adapter "))
        self.assertEqual(fish("weft completion "), {"bash", "zsh", "fish"})
        for command in (("run",), ("adapter", "merge"), ("eval", "logits")):
            self.assertLessEqual({"--" + name for _, name, _ in helped(*command)} - {"--help"}, fish("weft " + " ".join(command) + " --"))

        for line, values in VALUES.items():
            self.assertEqual(fish(f"weft {line} "), values, line)
        self.assertIn("README.md", fish("weft run --grammar READ"))

    def test_another_shell_is_named(self):
        p = weft("completion", "tcsh")
        self.assertEqual((p.returncode, p.stdout), (2, b""))
        self.assertIn(b"'tcsh': bash, zsh and fish", p.stderr)


if __name__ == "__main__":
    main()
