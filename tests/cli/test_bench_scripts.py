# SPDX-License-Identifier: Apache-2.0
"""Tests of the scripts of bench/: what they say of programs whose figures are known, what they judge, and what they do not."""
import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree as ElementTree

from common import EMULATED, SANITIZED, WEFT, WHOLE, leave_out, main, weft

# Stands for llama-bench and llama-batched-bench: what bench/peers reads of their output, with constant rates.
FAKE = """#!{python} -SE
import json, sys
option = lambda name: sys.argv[sys.argv.index(name) + 1]
assert open(option("-m"), "rb").read(4) == b"GGUF" and int(option("-t")) == {threads}
if "-npl" in sys.argv:
    print("some table")
    print(json.dumps({{"pl": int(option("-npl")), "speed_tg": 40.0}}))
else:
    print(json.dumps([{{"n_prompt": int(option("-p")), "avg_ts": 1000.0 if int(option("-p")) else 10.0}}]))
"""

# weft bench beside them, of three threads, so many times as quick, but where it measures limits, too; beside a neighbour, which it looks for
# among its parent's children, it keeps so much of what is left. `stolen`: of its first runs, and of all that follow.
FAKE_WEFT = """#!{python} -SE
import glob, json, os, sys
option = lambda name: int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else 0
def read(path):
    try:
        return open(path).read()
    except OSError:
        return ") - 0"
if "--write" in sys.argv:
    open(sys.argv[-1], "w").write("GGUF")
else:
    assert "-t" not in sys.argv or os.environ.get("WEFT_CPU") == {cpu!r}
    threads = option("-t") or 3
    mine = [p for p in glob.glob("/proc/[0-9]*/") if int(read(p + "stat").rsplit(")", 1)[1].split()[1]) == os.getppid()] if {kept} < 1 else []
    busy = any("while True" in read(p + "cmdline") for p in mine)
    rate = (1000 if option("-p") else 40 if option("-b") > 1 else 10) * (0.1 if "--roofline" in sys.argv else 1)
    kept = {kept} * ((threads - 0.5) / threads if option("-p") else (threads - 1) / threads) if busy else 1
    runs = __file__ + ".runs"
    if option("-t"):
        open(runs, "a").write(".")
    stolen = {stolen}[min(os.path.getsize(runs), len({stolen})) - 1] if option("-t") else 0.0
    print(json.dumps([{{"share": {share}, "avg_ts": {times} * rate * threads / 3 * kept, "n_threads": threads, "stolen": stolen, "others": None, "throttled": 0,
                       "disturbed": int(stolen > 0.03)}}]))
"""

# weft bench, of which every row reaches this share of its limit; four sequences and more are so many times as quick as one, and so is depth. Of
# every three runs of a part with depth, in the second and third memory is twice as fast for that row alone (`uneven`). `stolen` as above, of the
# first row, and then it reaches a tenth of the share.
FAKE_BENCH = """#!{python} -SE
import json, os, sys
def values(option):
    return [int(v) for v in sys.argv[sys.argv.index(option) + 1].split(",")] if option in sys.argv else [0 if option == "-d" else 1]
p, n = values("-p")[0], values("-n")[0]
runs = __file__ + ".runs"
if {uneven} and 1024 in values("-d"):
    open(runs, "a").write(".")
fast = {uneven} and os.path.exists(runs) and os.path.getsize(runs) % 3 != 1
count = __file__ + ".count"
open(count, "a").write(".")
stolen = {stolen}[min(os.path.getsize(count), len({stolen})) - 1]
rows = [{{"n_prompt": p, "n_gen": n, "n_depth": d, "n_parallel": b, "median_ts": 100 * (min(b, 4) / 4 * {together} if b > 1 else 1) * ((2 if fast else {at_depth}) if d else 1),
                   "limit_read_ts": 2000 if d and fast else 1000, "read_bytes": 10, "limit": "read", "limit_ts": 1000, "share": {share}, "stolen": 0.0, "others": 0.01, "throttled": None, "disturbed": 0, "weft_version": "0", "cpu_info": "", "n_threads": 2}}
        for d in values("-d") for b in values("-b")]
if stolen > 0.03:
    rows[0].update({{"stolen": stolen, "disturbed": 1, "share": {share} / 10, "median_ts": 10}})
print(json.dumps(rows))
"""


@leave_out(EMULATED, "these scripts run programs of this machine")
class Scripts(unittest.TestCase):
    def script(self, name, *args, **environment):
        return subprocess.run([sys.executable, os.path.join("bench", name), *args], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "WEFT_HOST_ROOT": "/nowhere", **environment})  # this machine is unknown, and so never too busy

    def here(self, name, *args, **environment):
        """What script() does, in this process, which takes a fiftieth of the time: its fakes are not started but executed."""
        loader = importlib.machinery.SourceFileLoader("bench_" + name, os.path.join("bench", name))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))

        def execute(command, environment=()):
            out, path = io.StringIO(), command[0]
            with open(path) as file, contextlib.redirect_stdout(out), unittest.mock.patch.object(sys, "argv", [str(word) for word in command]), \
                    unittest.mock.patch.dict(os.environ, environment):
                exec(compile(file.read(), path, "exec"), {"__file__": path})
            return out.getvalue()
        err = io.StringIO()
        with unittest.mock.patch.dict(os.environ, {"WEFT_HOST_ROOT": "/nowhere", **environment}), \
                unittest.mock.patch.object(sys, "argv", [name, *args]), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            loader.exec_module(module)
            module.run, module.default_threads = execute, lambda weft: 3
            module.bench = lambda weft, shape, type_, part: json.loads(execute([weft, "bench", "--type", type_, *part]))
            try:
                status = module.main()
            except SystemExit as end:
                status = end.code
        return subprocess.CompletedProcess(args, status, "", err.getvalue())

    def fake(self, folder, name, text, **numbers):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text.format(python=sys.executable, **numbers))
        os.chmod(path, 0o755)
        return path

    @leave_out(SANITIZED and not WHOLE, "what these programs say is looked into by their own tests")
    def test_peers(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("llama-bench", "llama-batched-bench"):
                self.fake(folder, name, FAKE, threads=1)
            p = self.script("peers", WEFT[-1], "--shape", "tiny", "--types", "q4_0", "-p", "32", "-n", "4", "-d", "16", "-b", "3", "-t", "1",
                            "-r", "1", "--again", "0", "-o", os.path.join(folder, "out"), PATH=folder + ":" + os.environ["PATH"])
            self.assertEqual(p.returncode, 0, p.stderr)
            with open(os.path.join(folder, "out", "peers.json")) as file:
                rows = json.load(file)["rows"]
            with open(os.path.join(folder, "out", "peers.md")) as file:
                table = file.read()
            drawing = ElementTree.parse(os.path.join(folder, "out", "peers.svg")).getroot()
        self.assertEqual([r["name"] for r in rows], ["tg4", "tg4 @ d16", "tg4 x3", "pp32"])
        self.assertEqual([r["median"]["llama.cpp"] for r in rows], [10, 10, 40, 1000])
        self.assertEqual([(r["rounds"], len(r["samples"]["weft"])) for r in rows], [(3, 3), (3, 3), (1, 1), (1, 1)])
        for r in rows:
            self.assertAlmostEqual(r["ratio"], r["median"]["weft"] / r["median"]["llama.cpp"])
            self.assertIn(f"| q4_0 | {r['name']} | {r['rounds']} |", table)
        self.assertEqual(drawing.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertGreaterEqual(len(drawing.findall("{http://www.w3.org/2000/svg}rect")), 2 * len(rows))

    def test_peers_check_fails_where_a_bound_is_missed(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fake(folder, "llama-bench", FAKE, threads=3)
            for peer, batched, times, share, missed in (
                    ("llama.cpp", True, 2.8, 0.5, ""), ("llama.cpp", True, 2.7, 0.5, "together"), ("llama.cpp", True, 2.3, 0.5, "prompt together"),
                    ("llama.cpp", True, 1.4, 0.87, "prompt generation depth together"), ("llama.cpp", True, 1, 0.88, "prompt together"),
                    ("llama.cpp", True, 0.9, 0.9, "prompt generation depth together"), ("llama.cpp", False, 2.8, 0.5, "together"),
                    ("ik_llama.cpp", False, 1.6, 0.5, ""), ("ik_llama.cpp", False, 1.5, 0.5, "prompt"), ("ik_llama.cpp", False, 1, 0.9, "prompt generation"),
                    ("avx2", False, 1.3, 0.5, ""), ("avx2", False, 1.2, 0.5, "prompt generation"), ("avx2", False, 1, 0.9, "prompt generation")):
                with self.subTest((peer, batched, times)):
                    weft = self.fake(folder, "weft", FAKE_WEFT, times=times, share=share, kept=1, cpu={"avx2": "avx2"}.get(peer), stolen=[0.0])
                    of_several = ("--batched", self.fake(folder, "several", FAKE, threads=3)) if batched else ()
                    args = ("peers", weft, "--llama-bench", os.path.join(folder, "llama-bench"), *of_several, "--types", "q4_0", "-r", "1", "--peer", peer,
                            "--check", "-o", os.path.join(folder, "out"))
                    p = self.script(*args) if peer == "avx2" else self.here(*args)
                    self.assertEqual(p.returncode, 1 if missed else 0, p.stderr)
                    self.assertEqual(re.findall(r"^missed q4_0 (\w+):", p.stderr, re.M), missed.split(), p.stderr)
                    (said,) = re.findall(r"q4_0 generation: .* at least ([\d.]+) times .*: ([\d.]+) t/s, where the limit is ([\d.]+)$", p.stderr, re.M)
                    self.assertEqual(said[1:], (f"{10 * float(said[0]):.1f}", f"{10 * times / share:.1f}"))

    def test_peers_leaves_out_the_prompt(self):
        with tempfile.TemporaryDirectory() as folder:
            weft = self.fake(folder, "weft", FAKE_WEFT, times=1.3, share=0.5, kept=1, cpu="avx2", stolen=[0.0])
            self.fake(folder, "llama-bench", FAKE, threads=3)
            p = self.script("peers", weft, "--types", "q4_0", "-p", "0", "-r", "1", "--peer", "avx2", "--check", "-o", os.path.join(folder, "out"),
                            PATH=folder + ":" + os.environ["PATH"])
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("met    q4_0 generation: 1.30", p.stderr)
        self.assertIn("missed q4_0 prompt: not measured", p.stderr)

    def test_peers_without_llama_bench_is_skipped(self):
        p = self.script("peers", WEFT[-1], PATH="/nowhere")
        self.assertEqual(p.returncode, 77)
        self.assertIn("llama-bench", p.stdout)
        self.assertEqual(self.script("peers", WEFT[-1], "--check", PATH="/nowhere").returncode, 1)

    def test_peers_takes_a_round_at_least(self):
        p = self.script("peers", WEFT[-1], "-r", "0", "--llama-bench", "/bin/true")
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertIn("-r: give one round at least", p.stderr)

    def test_neighbour(self):
        p = self.script("neighbour", WEFT[-1], "--shape", "tiny", "-p", "8", "-n", "2", "-r", "1")
        if p.returncode != 77: # there is one core
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual([line.split()[1] for line in p.stdout.splitlines()], ["row", "---", "prompt", "generation"])

    def test_neighbour_check_fails_where_more_is_lost_than_it_takes(self):
        with tempfile.TemporaryDirectory() as folder:
            for kept, missed in ((0.91, []), (0.89, ["generation"]), (0.84, ["prompt", "generation"])):
                p = self.script("neighbour", self.fake(folder, "weft", FAKE_WEFT, times=1, share=1, kept=kept, cpu=None, stolen=[0.0]), "-r", "1", "--check")
                self.assertEqual(p.returncode, int(bool(missed)), p.stderr)
                self.assertEqual(re.findall(f"^missed (\\w+): {100 * kept:.0f} % of what is left", p.stderr, re.M), missed, p.stderr)
                self.assertEqual([line.split()[-3:] for line in p.stdout.splitlines()[2:]], 2 * [[f"{100 * kept:.0f}", "%", "|"]])

    def test_check_fails_when_a_count_rises_or_is_gone(self):
        with open("bench/history/instructions.json") as file:
            record = json.load(file)
        name = max(record["counts"], key=record["counts"].get)
        with tempfile.TemporaryDirectory() as folder:
            now = os.path.join(folder, "now.json")
            for factor, status, word in ((1, 0, ""), (1.015, 0, ""), (1.03, 1, "MORE: " + name), (0.9, 0, "less: " + name)):
                changed = {**record, "counts": {**record["counts"], name: int(factor * record["counts"][name])}}
                with open(now, "w") as file:
                    json.dump(changed, file)
                p = self.script("check", "unused", "--counts", now)
                self.assertEqual(p.returncode, status, p.stdout)
                self.assertIn(word, p.stdout)
            changed = {**record, "counts": {**record["counts"], name: int(1.006 * record["counts"][name])}}
            with open(now, "w") as file:
                json.dump(changed, file)
            for percent, status in (("0.5", 1), ("0.7", 0)):  # a small rise counts where a small one is asked for
                p = self.script("check", "unused", "--counts", now, "--tolerance", percent)
                self.assertEqual(p.returncode, status, p.stdout)
                self.assertIn(f"{status} more than {percent} % above the record", p.stdout)
            self.assertEqual(self.script("check", "unused", "--counts", now, "--tolerance", "-1").returncode, 2)
            with open(now, "w") as file:
                json.dump({**record, "counts": {k: v for k, v in record["counts"].items() if k != name}}, file)
            p = self.script("check", "unused", "--counts", now)
            self.assertEqual(p.returncode, 1, p.stdout)
            self.assertIn("GONE: " + name, p.stdout)
            with open(now, "w") as file:
                json.dump({**record, "compiler": "another"}, file)
            p = self.script("check", "unused", "--counts", now)
            self.assertEqual(p.returncode, 77)
            self.assertIn("another", p.stdout)

    @leave_out(SANITIZED and not WHOLE, "what these programs say is looked into by their own tests")
    def test_record(self):
        """What weft bench really says becomes rows, of one part of the grid: each part measures the machine for seconds."""
        loader = importlib.machinery.SourceFileLoader("bench_record", os.path.join("bench", "record"))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
        out, args = io.StringIO(), ("--shape", "tiny", "--types", "q4_0", "--prompts", "", "-r", "1", "--again", "0", "-o", "-")
        with unittest.mock.patch.dict(os.environ, WEFT_HOST_ROOT="/nowhere"), unittest.mock.patch.object(sys, "argv", ["record", WEFT[-1], *args]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            loader.exec_module(module)
            module.GRID, module.MOST = module.GRID[1:2], 1  # rounds that are added are test_record_compares_rows_for_which_memory_was_alike's
            with self.assertRaises(SystemExit) as end:
                module.main()
        self.assertEqual(end.exception.code, 0)
        record = json.loads(out.getvalue())
        self.assertEqual([(r["type"], r["test"]) for r in record["rows"]], [("q4_0", "tg32"), ("q4_0", "tg32 @ d1024")])
        for r in record["rows"]:
            self.assertAlmostEqual(r["share"], r["median_ts"] / r["limit_ts"], places=2)

    def test_record_check_fails_where_a_bound_is_missed(self):
        with tempfile.TemporaryDirectory() as folder:
            for share, together, at_depth, missed in (
                    (0.93, 2.8, 0.88, []), (0.92, 2.8, 0.88, []), (0.87996, 2.8, 0.88, ["tg32"]), (0.93, 2.7996, 1, ["tg16 x4"]), (0.88, 2.8, 0.88, []),
                    (0.87, 2.8, 0.88, ["tg32"]), (0.62, 2.8, 1, ["tg32", "pp512"]), (0.59, 2.8, 1, ["tg32", "pp512", "tg16 x16"]),
                    (0.4, 2.8, 1, ["tg32", "pp512", "tg16 x16"]), (0.9, 2.7, 1, ["tg16 x4"]), (0.9, 2.8, 0.87, ["tg32 @ d1024"])):
                weft = self.fake(folder, "weft", FAKE_BENCH, share=share, together=together, at_depth=at_depth, uneven=0, stolen=[0.0])
                out = os.path.join(folder, "record.json")
                args = ("record", weft, "--types", "q4_0,bf16", "--prompts", "q2_k,q4_k", "-r", "2", "--check", "-o", out)
                p = self.script(*args) if share == 0.9 else self.here(*args)
                self.assertEqual(p.returncode, 1 if missed or share < 0.93 else 0, p.stderr)
                said = [line.split() for line in p.stderr.splitlines()]
                self.assertEqual([" ".join(w[2:-6]) for w in said if w[0] == "missed" and w[1] == "q4_0"], missed)
                self.assertEqual(sum(w[0] in ("met", "missed") for w in said), 10)  # 5 of q4_0, 3 of BF16, and the prompts of the others
                self.assertEqual(sum(w[:2] == ["missed", "q2_k"] for w in said), share < 0.5)
                self.assertEqual(sum(w[:2] == ["missed", "q4_k"] for w in said), share < 0.58)
                self.assertEqual(sum(w[:3] == ["missed", "bf16", "tg32"] for w in said), (share < 0.93) + (at_depth < 0.88))
                self.assertEqual(sum(w[:3] == ["missed", "bf16", "pp512"] for w in said), share < 0.66)
                with open(out) as file:
                    self.assertEqual(len(json.load(file)["rows"]), 14)

    def test_record_compares_rows_for_which_memory_was_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            weft = self.fake(folder, "weft", FAKE_BENCH, share=0.93, together=2.8, at_depth=0.7, uneven=1, stolen=[0.0])
            p = self.script("record", weft, "--types", "q4_0", "--prompts", "", "-r", "3", "--check", "-o", os.path.join(folder, "record.json"))
            with open(os.path.join(folder, "record.json")) as file:
                row, = [r for r in json.load(file)["rows"] if r["test"] == "tg32 @ d1024"]
            runs = os.path.getsize(weft + ".runs")
        self.assertEqual((p.returncode, row["pairs"], row["times"], runs), (1, 3, 0.7, 7), p.stderr)

    def test_record_believes_no_share_far_above_the_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            weft = self.fake(folder, "weft", FAKE_BENCH, share=1.06, together=2.8, at_depth=0.9, uneven=0, stolen=[0.0])
            p = self.script("record", weft, "--types", "q4_0", "--prompts", "", "-r", "1", "--check", "-o", os.path.join(folder, "record.json"))
        self.assertEqual(p.returncode, 1)
        self.assertIn("at most 1.05: the limit is wrong", p.stderr)

    def judged(self, script, fake, stolen, *args, **numbers):
        """A script's check, of whose runs so much was stolen: its exit status, stderr, and how many runs there were."""
        with tempfile.TemporaryDirectory() as folder:
            self.fake(folder, "llama-bench", FAKE, threads=3)
            weft = self.fake(folder, "weft", fake, stolen=stolen, **numbers)
            p = self.here(script, weft, "--types", "q4_0", "--check", *args, PATH=folder + ":" + os.environ["PATH"])
            return p.returncode, p.stderr, max(os.path.getsize(weft + end) for end in (".runs", ".count") if os.path.exists(weft + end))

    def test_record_judges_no_round_of_which_much_was_taken(self):
        runs = 2 * 3  # rounds, parts of the grid
        for stolen, status, bad, n in (([0.0], 0, [], runs), ([0.02], 0, [], runs), ([0.45, 0.0], 0, [], runs + 1), ([0.45, 0.45, 0.0], 0, [], runs + 2),
                                       ([0.45], 75, ["pp512", "tg32", "tg32 @ d1024", "tg16 x4"], None)):
            with self.subTest(stolen):
                rc, err, count = self.judged(
                    "record",
                    FAKE_BENCH,
                    stolen,
                    "--prompts",
                    "",
                    "-r",
                    "2",
                    "-o",
                    "/dev/null",
                    share=0.93,
                    together=2.8,
                    at_depth=0.88,
                    uneven=0,
                )
                self.assertEqual(rc, status, err)
                self.assertCountEqual(re.findall(r"^not judged: q4_0 (.*): taken 46.0 % stolen; in 2 rounds too much$", err, re.M),
                                      [name for name in bad if name in ("pp512", "tg32")], err)
                self.assertCountEqual(re.findall(r"^not judged: q4_0 (.*): taken", err, re.M), bad, err)
                self.assertEqual("not figures to judge by" in err, bool(bad))
                self.assertNotIn("missed", err)
                if n:
                    self.assertEqual(count, n)

    def test_record_takes_medians_of_undisturbed_rounds(self):
        rc, err, _ = self.judged(
            "record",
            FAKE_BENCH,
            3 * [0.45] + [0.0],
            "--prompts",
            "",
            "-r",
            "2",
            "--again",
            "0",
            "-o",
            "/dev/null",
            share=0.93,
            together=2.8,
            at_depth=0.88,
            uneven=0,
        )
        self.assertEqual((rc, len(re.findall("^met", err, re.M))), (0, 5), err)
        rc, err, _ = self.judged("record", FAKE_BENCH, [0.45], "--prompts", "", "-r", "1", "-o", "/dev/null", share=10.6, together=2.8, at_depth=0.88, uneven=0)
        self.assertEqual(re.findall(r"^missed q4_0 +(.*?) +10.600 of .*: the limit is wrong", err, re.M), ["tg32 @ d1024", "tg16 x4", "tg16 x16"], err)
        self.assertNotIn(" 1.060 ", err)

    def test_record_keeps_no_history_of_what_was_not_judged(self):
        """And a bound that is missed counts, whatever else was not judged."""
        rc, err, _ = self.judged("record", FAKE_BENCH, [0.45], "--prompts", "", "-r", "1", "-o", "/dev/null", share=0.5, together=2.8, at_depth=0.88, uneven=0)
        self.assertEqual(rc, 1, err)  # tg16 x16 was quiet
        self.assertEqual(re.findall(r"^missed q4_0 +(.*?) +0", err, re.M), ["tg16 x16"], err)

    def test_peers_judges_no_round_of_which_much_was_taken(self):
        for stolen, status, seen in (([0.0], 0, "met    q4_0 generation"), ([0.45, 0.0], 0, "llama.cpp 10.0; taken 22.5 % stolen *, measured again"),
                                     ([0.45], 75, "not judged: q4_0 generation: taken 45.0 % stolen; in 3 of 3 rounds too much")):
            with self.subTest(stolen), tempfile.TemporaryDirectory() as out:
                rc, err, _ = self.judged("peers", FAKE_WEFT, stolen, "-r", "1", "--peer", "ik_llama.cpp", "-o", out, times=1.6, share=0.5, kept=1, cpu=None)
                self.assertEqual(rc, status, err)
                self.assertIn(seen, err)
                self.assertEqual(len(re.findall("^not judged", err, re.M)), 2 if status else 0, err)
                with open(os.path.join(out, "peers.md")) as file:
                    table = file.read()
                self.assertEqual((table.count("45.0 % stolen * |"), "not figures to judge by" in table), (2, True) if status else (0, False), table)
                with open(os.path.join(out, "peers.json")) as file:
                    self.assertEqual([row["judged"] for row in json.load(file)["rows"]], [not status] * 2)

    def host(self, root=""):
        loader = importlib.machinery.SourceFileLoader("bench_host", "bench/host.py")
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_host", loader))
        with unittest.mock.patch.dict(os.environ, WEFT_HOST_ROOT=root):
            loader.exec_module(module)
        return module

    def test_what_others_took(self):
        host, unknown = self.host(), self.host("/nowhere")
        text = "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 100 10 6 7 8 0 0\ncpu1 1 2 3 200 20 6 7 30 0 0\ncpu13 1 2 3 400 40 6 7 70\nintr 5\ncpu2 1 1 1 1 1 1 1 1\n"
        tick = host.TICK_S
        for cpus, n, idle, stolen in (({0, 13}, 2, 550, 78), ({1, 2}, 1, 220, 30)):
            said = host.parse_stat(text, cpus)
            self.assertEqual(said[0], n)
            self.assertAlmostEqual(said[1] / tick, idle)
            self.assertAlmostEqual(said[2] / tick, stolen)
        for short, known in (
            ("", (0, None, None)),
            ("cpu0 1 2 3", (1, None, None)),
            ("cpu0 1 2 3 4 5", (1, 9 * tick, None)),
            ("cpu0 1 2 3 4 5 6 7 x", (1, 9 * tick, None)),
            ("cpux 1 2 3 4 5 6 7 8", (0, None, None)),
            ("intr 1\ncpu0 1 2 3 4 5 6 7 8", (0, None, None)),
        ):
            self.assertEqual(host.parse_stat(short, {0}), known, short)
        mark = lambda wall, own, idle, stolen, n=2: argparse.Namespace(wall=wall, own=own, idle=idle, stolen=stolen, throttled=None, n_cpus=n, cpus={0, 1})
        with unittest.mock.patch.object(host, "cores", len):
            for own, idle, stolen, threads, parts in (
                    (2.2, 0, 1.8, 2, (0.45, 0)), (2.88, 0.1, 0.02, 2, (0.005, 0.25)), (4, -1, -1, 2, (0, 0)), (9, 0, 0, 2, (0, 0)),
                                                      (1.9, 0.2, 0.03, 1, (0.015, 0)), (1.2, 0.2, 0, 1, (0, 0.3))):
                taken = host.between(mark(5, 1, 50, 7), mark(7, 1 + own, 50 + idle, 7 + stolen), threads)
                self.assertAlmostEqual(taken["stolen"], parts[0])
                self.assertAlmostEqual(taken["others"], parts[1])
                self.assertIsNone(taken["throttled"])
                self.assertEqual(host.above(taken), sum(parts) > 0.03)
            taken = host.between(mark(5, 1, 50, 7, 1), mark(7, 1, 50, 7), 2)
            self.assertEqual((host.share(taken), host.text(taken, False), host.above(taken)), (None, "unknown", False))
        nothing = unknown.Mark().taken(2)
        self.assertEqual([nothing[part] for part in host.PARTS], [None] * 3)
        self.assertEqual([host.above({"stolen": 0.45, "seconds": ticks * tick}) for ticks in (4, 5)], [False, True])
        again = host.Again(100)
        self.assertEqual([again.wanted(d) for d in (True, False, True, True, True, True, True)], [True, False, True, True, True, False, False])

    def test_kernels_mark_rows_that_were_disturbed(self):
        """Beside a process that takes half of the only core, no row is a figure to judge by, and the output says so."""
        only = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        with subprocess.Popen([*only, sys.executable, "-c", "while True: pass"]) as busy:
            try:
                p = subprocess.run([*only, os.path.join(os.path.dirname(WEFT[-1]), "bench_kernels"), "-t", "1", "norm_rms_ref"],
                                   capture_output=True, text=True, timeout=600)
            finally:
                busy.kill()
        self.assertEqual(p.returncode, 0, p.stderr)
        limits, row = [line for line in p.stdout.splitlines() if line.startswith(("limits", "norm_rms"))]
        self.assertRegex(limits, r"; taken \d+\.\d % \w+ \*$")
        self.assertRegex(row, r" \d+\.\d % \w+ \*$")
        self.assertIn("time of 1 of 1 rows others took more than 3 %: not figures to judge by", p.stderr)

    def serve_module(self):
        loader = importlib.machinery.SourceFileLoader("bench_serve", "bench/serve")
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_serve", loader))
        loader.exec_module(module)
        return module

    def serve(self, *args, **replaced):
        """bench/serve, with some of its functions replaced: its exit status, and what stood on stderr."""
        module = self.serve_module()
        err = io.StringIO()
        load = os.path.join(os.path.dirname(WEFT[-1]), "bench_load")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err), \
                unittest.mock.patch.multiple(module, **{"ids": module.ids, **replaced}), \
                unittest.mock.patch.object(sys, "argv", ["serve", WEFT[-1], load, "--llama-server", "", *args]):
            return module.main(), err.getvalue()

    def serve_results(self, folder):
        with open(os.path.join(folder, "serve.json")) as file:
            rows = json.load(file)["rows"]
        with open(os.path.join(folder, "serve.md")) as file:
            table = file.read()
        return rows, table, ElementTree.parse(os.path.join(folder, "serve.svg")).getroot()

    @leave_out(SANITIZED and not WHOLE, "what these programs say is looked into by their own tests")
    def test_serve(self):
        with tempfile.TemporaryDirectory() as folder:
            of = ("--model", "models/alderbrook.gguf", "-t", "1", "-o", folder)
            for _ in range(5):  # a stream may end before the other begins, as a machine has it: then they have no rate together
                status, err = self.serve(*of, "--clients", "1,2", "-n", "200", "-c", "256", "-r", "1", "--only", "streams",
                                         "--others", "9")
                self.assertEqual(status, 0, err)
                if min(r["rate"] for r in self.serve_results(folder)[0]) > 0:
                    break
            for part in ("streams", "prefix", "arrivals", "cost"):
                with self.subTest(part), self.assertRaisesRegex(SystemExit, "^serve: refused, status 400: .*from 0 to 2047"):
                    self.serve(*of, "--clients", "1", "-c", "256", "-r", "1", "--only", part, "--seconds", "1", "--rate", "9",
                               ids=lambda o, rng, n: [2048] * min(n, 16))
            rows, table, drawing = self.serve_results(folder)
            self.assertEqual([(r["program"], r["part"], r["clients"], r["rounds"]) for r in rows], [("weft", "streams", 1, 1), ("weft", "streams", 2, 1)])
            for r in rows:
                self.assertGreater(min(r["rate"], r["first_ms"]), 0)
                self.assertLessEqual(r["between_ms"], r["between_p99_ms"])
                self.assertGreater(r["of_memory"], 0)
                self.assertIn(f"| {r['clients']} streams | weft | {r['rate']:.1f} |", table)
            svg = "{http://www.w3.org/2000/svg}"
            texts = [text.text for text in drawing.findall(svg + "text")]
            self.assertEqual([texts.count(f"{n} streams") for n in (1, 2)], [3, 3])  # speed, time between tokens, time to the first
            self.assertEqual(len(drawing.findall(svg + "rect")), 1 + 2 + 2 * 3)  # ground, legend, bars
            # What is measured anew replaces what was measured before, and the rest stays.
            again = {**rows[1], "rate": 12345.5}
            self.assertEqual(self.serve(*of, measure=lambda o, model: [again])[0], 0)
            self.assertEqual(self.serve_results(folder)[0], [rows[0], again])

    def test_serve_check_fails_where_a_bound_is_missed(self):
        times = dict.fromkeys(("first_ms", "first_p99_ms", "between_ms", "between_p99_ms"), 1)
        kept = {
            ("weft", "prefix", 0): {"cold_ms": 500, "warm_ms": 5, "times": 100},
            ("weft", "cost", 0): {"http": 9, "bench": 10, "cost": 0.1, "outside": 0.03},
        }
        for n, rate in ((1, 1.1), (4, 2.5), (16, 2.8)):
            kept.update({("weft", "streams", n): {"rate": 10 * rate, "of_memory": 0.5, **times}, ("llama.cpp", "streams", n): {"rate": 10, **times}})
        cases = [({}, "")]
        slow = [(n, {"rate": rate, "of_memory": 0.84, **times}) for n, rate in ((1, 10.9), (4, 24.8), (16, 27.8))]
        cases += [({("weft", "streams", n): row}, f"{n} streams: {row['rate'] / 10:.2f}, 84 % of what memory allows;") for n, row in slow]
        cases += [({("weft", "streams", n): {**row, "of_memory": 0.85}}, "") for n, row in slow]
        cases += [
            ({("llama.cpp", "streams", 4): None}, "4 streams: not measured"),
            ({("weft", "prefix", 0): {"cold_ms": 500, "warm_ms": 5.1, "times": 98}}, "prefix: 98;"),
            ({("weft", "cost", 0): {"http": 9, "bench": 10, "cost": 0.1, "outside": 0.031}}, "cost: 0.031;"),
            (dict.fromkeys(kept), "prefix: not measured"),
        ]
        for changed, words in cases:
            rows = [
                {"program": program, "part": part, "clients": n, "rounds": 1, **numbers}
                for (program, part, n), numbers in {**kept, **changed}.items()
                if numbers
            ]
            with tempfile.TemporaryDirectory() as folder:
                for check in ((), ("--check",)):  # without it nothing is held against anything
                    status, err = self.serve("--model", "unused", "-t", "2", "-o", folder, *check, measure=lambda o, model: list(rows))
                    self.assertEqual(
                        (status, err.count("\n")),
                        (int(bool(check and words)), 5 if check and len(rows) == 0 else int(bool(check and words))),
                        err,
                    )
                    self.assertIn(words if check else "", err)

    def test_serve_judges_no_row_of_which_much_was_taken(self):
        times = dict.fromkeys(("first_ms", "first_p99_ms", "between_ms", "between_p99_ms"), 1)
        taken = {"stolen": 0.45, "others": None, "throttled": None, "disturbed": 3, "judged": False}
        rows = [
            {
                "program": program,
                "part": "streams",
                "clients": n,
                "rounds": 3,
                "rate": 10,
                "of_memory": 0.5,
                **times,
                **(taken if program == "llama.cpp" else {}),
            }
            for n in (1, 4, 16)
            for program in ("weft", "llama.cpp")
        ]
        rows += [{"program": "weft", "part": "prefix", "clients": 0, "rounds": 3, "cold_ms": 500, "warm_ms": 50, "times": 10, **taken},
                 {"program": "weft", "part": "cost", "clients": 0, "rounds": 3, "http": 9, "bench": 10, "cost": 0.1, "outside": 0.5, **taken}]
        with tempfile.TemporaryDirectory() as folder:
            status, err = self.serve("--model", "unused", "-t", "2", "-o", folder, "--check", measure=lambda o, model: list(rows))
            self.assertEqual((status, err.count("serve: not judged: "), err.count("\n")), (75, 5, 5), err)
            self.assertIn("1 streams: taken 45.0 % stolen\n", err)
            _, table, _ = self.serve_results(folder)
            self.assertEqual(table.count("45.0 % stolen *"), 5, table)
            quiet = {**rows[-1], "judged": True, "disturbed": 0}
            status, err = self.serve("--model", "unused", "-t", "2", "-o", folder, "--check", measure=lambda o, model: rows[:-1] + [quiet])
            self.assertEqual((status, err.count("serve: not judged: ")), (1, 4), err)
            self.assertIn("serve: cost: 0.5;", err)

    def test_serve_takes_medians_of_undisturbed_rounds(self):
        module = self.serve_module()
        sample = lambda rate, stolen: {"rate": rate, "stolen": stolen, "others": None, "throttled": 0, "disturbed": stolen > 0.03}
        row = module.median_of([sample(5, 0.45), sample(10, 0.0), sample(12, 0.02)])
        self.assertEqual(row, {"rate": 11, "stolen": 0.01, "others": None, "throttled": 0, "disturbed": 1, "judged": True})
        row = module.median_of([sample(5, 0.45), sample(7, 0.5), sample(12, 0.0)])
        self.assertEqual((row["rate"], row["disturbed"], row["judged"]), (7, 2, False))

    def test_serve_measures_again_what_was_disturbed(self):
        module, n = self.serve_module(), []
        o = argparse.Namespace(threads=2, others=0.03, until=float("inf"))
        for shares, times in (([0.0], 1), ([0.45, 0.0], 2), ([0.45], 4)):
            mark = unittest.mock.Mock(wall=0)
            mark.taken.side_effect = lambda *_: {"seconds": 4, "stolen": shares[min(len(n), len(shares)) - 1], "others": None, "throttled": None}
            n.clear()
            with unittest.mock.patch.object(module.host, "Mark", lambda own: mark):
                result, taken = module.undisturbed(o, argparse.Namespace(cpu_s=None), lambda: n.append(1) or len(n))
            self.assertEqual((result, taken["disturbed"]), (times, shares[-1] > 0.03))


if __name__ == "__main__":
    main()
