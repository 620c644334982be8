# SPDX-License-Identifier: Apache-2.0
"""Tests of weft bench beyond its plain rows: --batched, --profile, --trace, --write, what others took, and the limits."""
import csv
import io
import json
import os
import re
import statistics
import tempfile
import unittest

from common import EMULATED, SANITIZED, leave_out, main, weft

N_LAYERS = 2  # of the shape "tiny"


def bench(*args, shape="tiny"):
    p = weft("bench", "--synthetic", shape, "--again", "0", *args)  # on a busy machine all would be measured twice
    if p.returncode:
        raise AssertionError(p.stderr.decode())
    return p.stdout.decode()


class Taken(unittest.TestCase):
    """What others took stands in every form of output; what of it is right, tests/unit/base_taken.c and bench/check-taken say."""
    ARGS = ("-p", "8", "-n", "2", "-r", "2")

    def check(self, row, n):
        for part in ("stolen", "others", "throttled"):
            self.assertTrue(row[part] is None or row[part] >= 0, row)
        self.assertIn(row["disturbed"], range(n + 1))
        self.assertEqual(row["left_out"], 0)  # --again 0

    def test_json(self):
        for form in ((), ("--batched",), ("--profile",)):
            for row in json.loads(bench(*self.ARGS, *form, "-o", "json")):
                self.check(row, 2)
                self.assertEqual(len(row.get("samples_taken", [0, 0])), 2)
            for line in bench(*self.ARGS, *form, "-o", "jsonl").splitlines():
                self.check(json.loads(line), 2)

    def test_csv(self):
        for row in csv.DictReader(io.StringIO(bench(*self.ARGS, "-o", "csv"))):
            self.check({key: float(row[key]) if row[key] else None for key in ("stolen", "others", "throttled", "disturbed", "left_out")}, 2)

    def test_table_and_mark(self):
        said = r"(unknown|[\d.]+ %( (stolen|others|throttled))?)( \*)?"
        for form, n in (((), 2), (("--batched",), 1), (("--profile",), 2)):
            p = weft("bench", "--synthetic", "tiny", *self.ARGS, *form)
            rows = [m for m in re.findall(rf"(?:\| +|; taken: ){said}(?: \|)?$", p.stdout.decode(), re.M)]
            self.assertEqual(len(rows), n, p.stdout)
            self.assertEqual(b"not figures to judge by" in p.stderr, any(mark for *_, mark in rows), p)


class Threads(unittest.TestCase):
    def test_the_option_comes_before_the_environment(self):
        for args, wish, n in (((), "1", 1), ((), "2", 2), (("-t", "1"), "2", 1), (("-t", "2"), "1", 2)):
            p = weft("bench", "--synthetic", "tiny", "-p", "4", "-n", "0", "-r", "1", "-o", "json", *args,
                     env={**os.environ, "WEFT_THREADS": wish})
            self.assertEqual([row["n_threads"] for row in json.loads(p.stdout)], [n], (args, wish))


class Output(unittest.TestCase):
    ARGS = ("-p", "4", "-n", "0", "-r", "1", "--json")

    def test_json_as_other_commands_have_it(self):
        self.assertEqual([row["n_prompt"] for row in json.loads(bench(*self.ARGS))], [4])

    def test_two_forms_at_once_are_refused(self):
        for form in ("csv", "md"):
            p = weft("bench", "--synthetic", "tiny", "-o", form, *self.ARGS)
            self.assertEqual((p.returncode, p.stdout), (2, b""), form)
            self.assertIn(b"give one of -o and --json", p.stderr)


class Batched(unittest.TestCase):
    ARGS = ("--batched", "-p", "16,24", "-n", "4", "-b", "1,3", "-r", "2")

    def test_the_columns_of_llama_batched_bench(self):
        lines = bench(*self.ARGS).splitlines()
        head = [cell.strip() for cell in lines[0].strip("|").split("|")]
        self.assertEqual(head, ["PP", "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s", "taken"])
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
        self.assertEqual([row[:4] for row in cells], [["16", "4", "1", "20"], ["16", "4", "3", "60"], ["24", "4", "1", "28"], ["24", "4", "3", "84"]])

    def test_json_adds_up(self):
        rows = json.loads(bench(*self.ARGS, "-o", "json"))
        for row in rows:
            self.assertEqual(row["n_kv"], row["pl"] * (row["pp"] + row["tg"]))
            self.assertAlmostEqual(row["t"], row["t_pp"] + row["t_tg"], places=5)
            for speed, tokens, time in (("speed_pp", row["pl"] * row["pp"], "t_pp"), ("speed_tg", row["pl"] * row["tg"], "t_tg"),
                                        ("speed", row["n_kv"], "t")):
                self.assertGreater(row[speed], 0)
                self.assertLess(abs(row[speed] * row[time] / tokens - 1), 0.05, speed)
        lines = bench(*self.ARGS, "-o", "jsonl").splitlines()
        self.assertEqual([json.loads(line)["pl"] for line in lines], [1, 3, 1, 3])


class Profile(unittest.TestCase):
    ARGS = ("--profile", "-p", "40", "-n", "3", "-r", "2", "-t", "2")

    def test_the_parts_add_up_to_the_steps(self):
        for row in json.loads(bench(*self.ARGS, "-o", "json")):
            parts = sum(op["ns"] for op in row["ops"])
            self.assertGreater(parts, 0)
            self.assertGreaterEqual(row["between_ns"], 0)
            self.assertLessEqual(abs(parts + row["between_ns"] - row["step_ns"]), len(row["ops"]) + 1)
            self.assertLessEqual(abs(sum(layer["ns"] for layer in row["layers"]) - parts), len(row["ops"]) + len(row["layers"]))
            for op in row["ops"]:
                self.assertLessEqual(op["wait_ns"], op["ns"] + 1)
            self.assertGreater(sum(op["wait_ns"] for op in row["ops"]), 0)  # to arrive at a barrier takes time, even the last

    def test_every_layer_and_every_matrix_is_there(self):
        prompt, gen = json.loads(bench(*self.ARGS, "-o", "json"))
        self.assertEqual((prompt["test"], prompt["n_steps"], gen["test"], gen["n_steps"]), ("pp40", 2, "tg3", 6))
        for row in (prompt, gen):
            self.assertEqual(sorted(layer["layer"] for layer in row["layers"]), list(range(-1, N_LAYERS)))
            for layer in row["layers"]:
                names = "+".join(op["name"] for op in layer["ops"] if op["op"] == "linear").split("+")
                wanted = ["output"] if layer["layer"] < 0 else "attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down".split()
                self.assertEqual(sorted(names), sorted(wanted))
                self.assertEqual(sum(op["op"] == "attention" for op in layer["ops"]), int(layer["layer"] >= 0))

    def test_bytes_and_operations_are_those_of_the_shape(self):
        # "tiny": width 256, hidden 512, 4 heads and 2 key/value heads of 64, 512 tokens; Q4_0 has 18 bytes per 32 weights.
        (row,) = json.loads(bench("--profile", "-p", "0", "-n", "1", "-d", "9", "-r", "1", "-o", "json"))
        ops = {op["name"]: op for op in row["ops"]}
        weights = 256 * (256 + 128 + 128)
        qkv = ops["attn_q+attn_k+attn_v"]
        self.assertEqual(qkv["n"], N_LAYERS)
        self.assertEqual(qkv["ops"], N_LAYERS * 2 * weights)
        self.assertEqual(qkv["bytes"], N_LAYERS * (weights * 18 // 32 + 4 * (256 + 256 + 128 + 128)))
        attention = next(op for op in row["ops"] if op["op"] == "attention")
        self.assertEqual(attention["ops"], N_LAYERS * 2 * 10 * 4 * (64 + 64))
        self.assertEqual(attention["bytes"], N_LAYERS * (10 * 2 * 2 * (64 + 64) + 4 * (256 + 256)))

    def test_table(self):
        table = bench(*self.ARGS)
        for text in ("pp40: 2 steps", "tg3: 6 steps", "linear ffn_gate", "between ops", "| outside"):
            self.assertIn(text, table)

    def test_counters_of_every_op(self):
        names = ["cycles", "instructions", "branch_misses", "llc_misses", "l1d_misses", "dtlb_misses"]
        own = ["task_ns", "page_faults", "context_switches"]
        args = ("--counters", "-p", "40", "-n", "3", "-r", "2", "-t", "2")
        for row in json.loads(bench(*args, "-o", "json")):
            self.assertEqual(set(row["counters_absent"]) - set(names), set())  # the system's are there always
            for op in row["ops"] + row["layers"]:
                self.assertEqual(list(op["counters"]), names + own)
                for name in names:
                    if name in row["counters_absent"]:
                        self.assertIsNone(op["counters"][name])
                    elif op["counters"][name] is not None:
                        self.assertGreaterEqual(op["counters"][name], 0)
            self.assertGreater(sum(op["counters"]["task_ns"] for op in row["ops"]), 0)
            for own_name in own:
                self.assertEqual(sum(op["counters"][own_name] for op in row["ops"]),
                                 sum(layer["counters"][own_name] for layer in row["layers"]))
        table = bench(*args)
        for text in ("counted per step", "| all ops ", " context_switches |"):
            self.assertIn(text, table)
        self.assertEqual("n/a: " in table, "| " + "n/a".rjust(16) + " |" in table)
        self.assertNotIn("counted per step", bench(*self.ARGS))
        self.assertNotIn("counters", json.loads(bench(*self.ARGS, "-o", "json"))[0])

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            bench("-p", "40", "-n", "3", "-r", "2", "--trace", path)
            with open(path) as file:
                events = json.load(file)["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        self.assertEqual({e["args"]["name"] for e in events if e["name"] == "process_name"}, {"pp40", "tg3"})
        for e in spans:
            self.assertGreaterEqual(e["ts"], 0)
            self.assertGreaterEqual(e["dur"], 0)
        steps = [e for e in spans if e["name"] == "step"]
        self.assertEqual([e["args"]["rows"] for e in steps], [40, 1, 1, 1])
        for e in spans:
            around = [s for s in steps if s["pid"] == e["pid"] and s["ts"] <= e["ts"] + 0.001
                      and e["ts"] + e["dur"] <= s["ts"] + s["dur"] + 0.002]
            self.assertEqual(len(around), 1, e)
        self.assertEqual({e["args"]["layer"] for e in spans if e["name"].startswith("linear")}, {-1, 0, 1})

    def test_a_trace_that_cannot_be_written_is_an_error(self):
        p = weft("bench", "--synthetic", "tiny", "-p", "8", "-n", "0", "-r", "1", "--trace", "/dev/full")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"/dev/full", p.stderr)
        p = weft("bench", "--synthetic", "tiny", "--trace", "/nowhere/trace.json")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"/nowhere/trace.json", p.stderr)


    def test_a_trace_is_not_written_over_the_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path, other = os.path.join(folder, "tiny.gguf"), os.path.join(folder, "other")
            weft("bench", "--synthetic", "tiny", "--write", path)
            os.link(path, other)
            with open(path, "rb") as file:
                before = file.read()
            for name in (path, other):
                p = weft("bench", path, "-p", "4", "-n", "0", "-r", "1", "--trace", name)
                self.assertEqual(p.returncode, 1)
                self.assertIn(b"would be written over", p.stderr)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before)


class Modes(unittest.TestCase):
    def test_what_does_not_go_together_is_refused(self):
        for args, why in ((("--batched", "--profile"), b"one of"), (("--roofline", "--trace", "x"), b"one of"),
                          (("--profile", "-o", "csv"), b"md, json or jsonl"),
                          (("--batched", "--counters"), b"one of"), (("--batched", "-d", "8"), b"leave out -d")):
            p = weft("bench", "--synthetic", "tiny", *args)
            self.assertEqual(p.returncode, 2, args)
            self.assertIn(why, p.stderr)
        p = weft("bench", "--write", "x.gguf", "model.gguf")
        self.assertEqual(p.returncode, 2)


@leave_out(EMULATED, "measuring under emulation says nothing")
class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rows = json.loads(bench("-p", "0", "-n", "4", "-d", "0,512", "-b", "1,4", "-r", "1", "--no-warmup", "--roofline", "-o", "json"))
        cls.rows = {(r["n_prompt"], r["n_depth"], r["n_parallel"]): r for r in rows}

    def test_the_lower_limit_binds(self):
        for row in self.rows.values():
            self.assertGreater(min(row["limit_ts"], row["share"]), 0)
            self.assertAlmostEqual(row["limit_ts"], min(row["limit_read_ts"], row["limit_compute_ts"]))
            self.assertEqual(row["limit"] == "read", row["limit_read_ts"] < row["limit_compute_ts"])

    @leave_out(SANITIZED, "it measures the machine six times more")
    def test_the_share_is_the_median_of_what_each_repetition_reached_of_its_own_limit(self):
        row, = json.loads(bench("-p", "0", "-n", "4", "-r", "5", "--no-warmup", "--roofline", "-o", "json"))
        shares = [ts / limit for ts, limit in zip(row["samples_ts"], row["samples_limit_ts"])]
        self.assertEqual(len(shares), 5)
        self.assertLess(abs(row["share"] / statistics.median(shares) - 1), 0.001)
        # The limit is of the medians of what was measured. Where reading binds in one repetition and computing in another, it is above the median of
        # theirs; and one of five reached both medians.
        self.assertGreater(row["limit_ts"], statistics.median(row["samples_limit_ts"]) * 0.999)
        self.assertLess(row["limit_ts"], max(row["samples_limit_ts"]) * 1.001)

    def test_depth_costs_bytes_and_company_saves_them(self):
        """Four sequences share the weights; each reads keys and values of its own, here of 512 tokens before and 4 of its own."""
        alone, four = self.rows[0, 0, 1], self.rows[0, 0, 4]
        deep, four_deep = self.rows[0, 512, 1], self.rows[0, 512, 4]
        kept = deep["read_bytes"] - alone["read_bytes"]
        self.assertGreater(kept, 0)
        self.assertAlmostEqual(four_deep["read_bytes"] - four["read_bytes"], kept, delta=1)
        own = kept / 512 * 2.5  # 1, 2, 3 and 4 tokens
        self.assertAlmostEqual(four["read_bytes"] - own, (alone["read_bytes"] - own) / 4, delta=1)
        for r in self.rows.values():  # what it takes to read them is the limit
            self.assertGreater(r["limit_read_ts"] * r["read_bytes"], 0)


class Fill(unittest.TestCase):
    def test_a_filled_depth_says_so(self):
        options = ("-p", "0", "-n", "2", "-d", "512,1536", "-r", "1", "--no-warmup", "--fill")
        half, deep = json.loads(bench(*options, "-o", "json"))
        self.assertNotIn("depth_filled", half)  # it was read whole
        self.assertTrue(deep["depth_filled"])
        self.assertEqual((deep["n_depth"], len(deep["samples_ns"])), (1536, 1))
        self.assertIn("tg2 @ d1536 filled", bench(*options))
        p = weft("bench", "--synthetic", "tiny", "--fill")
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"--fill is for a depth: give -d", p.stderr)


class Write(unittest.TestCase):
    def test_the_file_is_the_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tiny.gguf")
            p = weft("bench", "--synthetic", "tiny", "--type", "q8_0", "--write", path)
            self.assertEqual((p.returncode, p.stdout), (0, b""), p.stderr)
            info = json.loads(weft("info", path, "--json").stdout)
            self.assertEqual(os.listdir(folder), ["tiny.gguf"])
            ids = weft("tokenize", path, "w300 w301").stdout.split()
            self.assertEqual(ids[0], b"1")
            row = json.loads(weft("bench", path, "-p", "8", "-n", "0", "-r", "1", "-o", "jsonl").stdout)
            memory = json.loads(bench("--type", "q8_0", "-p", "8", "-n", "0", "-r", "1", "-o", "jsonl"))
            run = weft("run", path, "w300", "-n", "4", "--temp", "0")
        self.assertEqual(info["metadata"]["llama.block_count"], N_LAYERS)
        self.assertEqual(run.returncode, 0, run.stderr)
        for field in ("model_type", "model_size", "model_n_params"):
            self.assertEqual(row[field], memory[field])

    @leave_out(SANITIZED or EMULATED, "it makes a gigabyte of random weights")
    def test_shapes_have_their_models_parameters_in_every_type(self):
        for shape, params, type_ in (("qwen2.5-0.5b", 494032768, "q4_k"), ("qwen2.5-0.5b", 494032768, "q2_k"), ("llama-3.2-1b", 1235814400, "q2_k")):
            row, = json.loads(bench("--type", type_, "-p", "1", "-n", "0", "-r", "1", "-o", "json", shape=shape))
            self.assertEqual(row["model_n_params"], params)

    def test_every_shape_is_listed_once(self):
        p = weft("bench", "--synthetic", "?", "-p", "1")
        names = re.search(r"known: (.*)", p.stderr.decode()).group(1).split(", ")
        self.assertEqual(names, ["tinyllama-1.1b", "qwen2.5-0.5b", "llama-3.2-1b", "llama-3.1-8b", "qwen3-4b", "tiny", "tiny-128"])


if __name__ == "__main__":
    main()
