# SPDX-License-Identifier: Apache-2.0
"""Claims about the command line: what it prints, where, and its exit status. usage: test_cli.py build/weft"""
import csv
import io
import json
import os
import re
import signal
import struct
import subprocess
import tempfile
import unittest

from gguf_maker import Model
from common import EMULATED, PATIENCE, STORIES, THREADS_WATCHED, WEFT, WHOLE, check_report, leave_out, main, needs_models, shared, weft


@leave_out(THREADS_WATCHED and not WHOLE, "there is one thread")
class Usage(unittest.TestCase):
    def test_no_command_is_usage(self):
        p = weft()
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"usage: weft COMMAND", p.stderr)

    def test_unknown_command_is_usage(self):
        p = weft("fly")
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"no command 'fly'", p.stderr)

    def test_every_command_has_help(self):
        listing = weft("--help").stdout.decode()
        commands = re.findall(r"^  (\w+)  ", listing, re.M)
        self.assertGreaterEqual(len(commands), 6)
        for c in commands:
            p = weft(c, "--help")
            self.assertEqual(p.returncode, 0, c)
            self.assertIn(b"Options:", p.stdout, c)

    def test_bad_options_are_usage(self):
        for args in (["run"], ["run", "a", "b", "c"], ["run", "m", "--temp", "x"], ["run", "m", "-n", "1.5"], ["run", "m", "--no-such"],
                     ["run", "m", "--kv-type", "q9"],
                     ["serve", "m", "--kv-types", "q8,q9"], ["run", "m", "--seed", "-1"], ["bench"], ["bench", "m", "--synthetic", "tiny"],
                     ["bench", "--synthetic", "tiny", "--type", "q9"], ["bench", "m", "-p", "1,,2"], ["eval", "dreams", "m"],
                     ["eval", "logits", "m"], ["run", "m", "-t", "0"]):
            self.assertEqual(weft(*args).returncode, 2, args)

    def test_a_tier_that_there_is_not_is_refused(self):
        """A slip in WEFT_CPU ends the command: on readable C it would run a hundred times as long, and what it measures would mean nothing."""
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "text")
            with open(text, "w") as file:
                file.write("Once upon a time.\n" * 50)
            for args in (["bench", "--synthetic", "tiny", "-p", "4", "-n", "0", "-r", "1"], ["devices"],
                         ["train", text, "--tokenizer", "models/alderbrook.gguf", "--out", os.path.join(folder, "run"), "--steps", "1"]):
                p = weft(*args, env={**os.environ, "WEFT_CPU": "avx-512"})
                self.assertEqual((p.returncode, p.stdout), (1, b""), args)
                self.assertIn(b"WEFT_CPU=avx-512: no such tier; known are ref,", p.stderr)

    def test_tuning_that_there_is_not_is_refused(self):
        """A slip in WEFT_TUNE ends the command and names the rows that there are; each of those runs here, and --plan says which."""
        p = weft("devices", env={**os.environ, "WEFT_TUNE": "zen44"})
        self.assertEqual((p.returncode, p.stdout), (1, b""))
        self.assertIn(b"WEFT_TUNE=zen44: no such row of tune.def; known are generic, zen4", p.stderr)
        said = {name: weft("info", "models/alderbrook.gguf", "--plan", env={**os.environ, "WEFT_TUNE": name}) for name in ("generic", "zen4")}
        for name, p in said.items():
            self.assertEqual(p.returncode, 0, p.stderr)
            if b"_avx" in p.stdout:
                self.assertIn(f"tuned for {name}: prefetch ".encode(), p.stdout)

    def test_values_out_of_range_are_usage(self):
        """Whatever the option: status 2 before anything is opened, and the bounds as one writes them."""
        for option, values, words in (
                ("--temp", ("200", "-1", "inf"), "at least 0 and at most 100"), ("--top-p", ("2", "0", "-1"), "above 0 and at most 1"),
                ("--min-p", ("-1", "1.5"), "at least 0 and at most 1"), ("--repeat-penalty", ("0", "-2", "inf"), "above 0"),
                ("--presence-penalty", ("inf", "-inf"), "finite"), ("--frequency-penalty", ("inf",), "finite"), ("--top-k", ("-1",), "from 0 to 1073741824"),
                ("-n", ("-2",), "from -1 to 1073741824"), ("-t", ("0", "1025"), "from 1 to 1024"), ("-c", ("0",), "from 1 to 268435456"),
                ("--logit-bias", ("a=1", "1", "1=", "1=x", "-1=1", "1=nan", "1=inf"), "TOKEN=BIAS")):
            for value in values:
                p = weft("run", "/nonexistent", "a", option, value)
                self.assertEqual(p.returncode, 2, (option, value))
                self.assertIn(words, p.stderr.decode())
        for tokens in ("", " ", "a", "1 -2", "1 99999999999"):
            p = weft("eval", "logits", "/nonexistent", "--tokens", tokens, "-o", "-")
            self.assertEqual(p.returncode, 2, tokens)
            self.assertIn(b"--tokens", p.stderr)

    def test_missing_file_is_named(self):
        for c in (["run", "/nonexistent.gguf", "x"], ["info", "/nonexistent.gguf"], ["tokenize", "/nonexistent.gguf", "x"]):
            p = weft(*c)
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"/nonexistent.gguf", p.stderr)

    def test_scales_that_are_none_are_named(self):
        """What stands behind the last colon; a colon may be a path's, too."""
        with tempfile.TemporaryDirectory() as d:
            there, colon = os.path.join(d, "there.gguf"), os.path.join(d, "a:nan")
            for path in (there, colon):
                open(path, "w").close()
            for command in (("run", "no-model.gguf", "x"), ("chat", "no-model.gguf"), ("serve", "no-model.gguf"), ("compare", "no-model.gguf", "x")):
                for path, scales in (("x", ("1e39", "-1e39", "nan", "inf", "-inf", "")), (there, ("1e39", "nan", "", "half", "0.5x", "1:"))):
                    for scale in scales:
                        p = weft(*command, "--adapter", f"p={path}:{scale}")
                        self.assertEqual(p.returncode, 2, (command, path, scale, p.stderr))
                        self.assertIn(
                            f"--adapter p={path}:{scale}: the scale '{scale.rsplit(':')[-1]}' is no finite number that a float holds".encode(),
                            p.stderr,
                        )
                for path in (colon, there + ":0.5", "x:-2e3", "no:such"):  # further than to the model it does not come
                    p = weft(*command, "--adapter", f"p={path}")
                    self.assertEqual(p.returncode, 1, (command, path, p.stderr))
                    self.assertIn(b"no-model.gguf", p.stderr)

    def test_comparing_with_nothing_is_refused(self):
        """Before the model is read; as JSON it is a list of one answer."""
        p = weft("compare", "no-model.gguf", "x")
        self.assertEqual((p.returncode, b"--adapter is missing" in p.stderr, b"--adapter [NAME=]PATH" in p.stderr), (2, True, True), p.stderr)
        self.assertEqual(weft("compare", "no-model.gguf", "x", "--json").returncode, 1)

    def test_an_adapter_whose_path_has_an_equals_sign(self):
        """What begins as a path does, or is a file, is one; its name has the sign, too, unless it is given another."""
        with tempfile.TemporaryDirectory() as d:
            path, plain = os.path.join(d, "a=b.gguf"), os.path.join(d, "b.gguf")
            for p in (path, plain):
                open(p, "w").close()
            for given in (path, path + ":0.5", "./a=b.gguf", "../" + os.path.basename(d) + "/a=b.gguf", "a=b.gguf", "a=b.gguf:0.5"):
                p = weft("compare", "no-model.gguf", "x", "--adapter", "x=" + path, "--adapter", given, "--adapter", given, cwd=d)
                self.assertEqual((p.returncode, b"--adapter a=b: the name is given twice" in p.stderr), (2, True), (given, p.stderr))
            p = weft("compare", "no-model.gguf", "x", "--adapter", "./b=b.gguf", cwd=d)  # such a file is not there
            self.assertEqual((p.returncode, b"there is no such file" in p.stderr), (2, True), p.stderr)
            p = weft("compare", "no-model.gguf", "x", "--adapter", "b=b.gguf", "--adapter", "b=b.gguf", cwd=d)
            self.assertEqual((p.returncode, b"--adapter b: the name is given twice" in p.stderr), (2, True), p.stderr)

    def test_an_adapter_without_a_name_is_a_file(self):
        for given in ("poem", "=models/poem.gguf", "models/none.gguf", "p=", "/", ""):
            p = weft("run", "no-model.gguf", "x", "--adapter", given)
            self.assertEqual((p.returncode, b"must be NAME=PATH or NAME=PATH:SCALE" in p.stderr), (2, True), (given, p.stderr))
        p = weft("run", "no-model.gguf", "x", "--adapter", "models/poem.gguf", "--adapter", "./models/poem.gguf:0.5")
        self.assertEqual((p.returncode, b"--adapter poem: the name is given twice; NAME=PATH gives another" in p.stderr), (2, True), p.stderr)

    def test_no_adapter_is_compared_as_the_base(self):
        """Two answers would have one name."""
        p = weft("compare", "no-model.gguf", "x", "--adapter", "a=x", "--adapter", "base=y")
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"--adapter base=y: 'base' names the answer without an adapter; give it another name", p.stderr)
        p = weft("run", "no-model.gguf", "x", "--adapter", "base=y")  # where nothing else has that name it is one like any other
        self.assertEqual((p.returncode, p.stderr.count(b"no-model.gguf")), (1, 1))

    def test_info_shows_the_plan(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "m.gguf")
            with open(path, "wb") as f:
                f.write(bytes(Model()))
            p = weft("info", path, "--plan")
            self.assertEqual(weft("info", path, "--plan", "--json").returncode, 2)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        for thing in (b"attention", b"blk.1.ffn_down", b"bytes"):
            self.assertIn(thing, p.stdout)

    def test_vocabulary_only_file(self):
        model = Model()
        model.tensors = []
        texts, scores, types = (model.meta["tokenizer.ggml." + key][1][1] for key in ("tokens", "scores", "token_type"))
        for text in ("He", "\u2581He", "ll", "llo", "\u2581Hello", "wo", "\u2581wo", "rld", "ld", "\u2581world", "H", "w"):
            texts.append(text)
            scores.append(len(text) - 20.0)
            types.append(1)
        hello, world = (str(texts.index(text)) for text in ("\u2581Hello", "\u2581world"))
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "vocabulary.gguf")
            with open(path, "wb") as f:
                f.write(bytes(model))
            self.assertEqual(weft("tokenize", path, "Hello world").stdout.decode(), f"1 {hello} {world}\n")
            self.assertEqual(weft("tokenize", path, "--no-bos", stdin=b"Hello world").stdout.decode(), f"{hello} {world}\n")
            pieces = weft("tokenize", path, "Hello world", "--pieces").stdout.decode()
            self.assertIn(f"{hello}  \u2581Hello", pieces)
            p = weft("run", path, "Hello")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"missing", p.stderr)

    def test_an_empty_name_is_named(self):
        for command in ("run", "info", "tokenize"):
            p = weft(command, "", *(["x"] if command != "info" else []))
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"the name of the model is empty", p.stderr)

    def test_devices(self):
        p = weft("devices", "--json")
        self.assertEqual(p.returncode, 0)
        self.assertEqual(json.loads(p.stdout)[0]["name"], "cpu")

    @leave_out(not os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            p = subprocess.run(WEFT + ["devices"], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE)
        self.assertEqual(p.returncode, 1)
        self.assertEqual(p.stderr, b"weft devices: writing to standard output failed\n")


class Compared(unittest.TestCase):
    def test_answers_side_by_side_are_those_alone(self):
        """Of the base and of each adapter, though one engine makes all of them at once. Without a name it has its file's."""
        model, ask = "models/alderbrook.gguf", ("--temp", "0", "-n", "8", "--json")
        adapters = {"pirate": "pirate=models/pirate.gguf", "poem": "models/poem.gguf:1"}
        p = weft("compare", model, "Once upon a time", "--raw", *(word for of in adapters.values() for word in ("--adapter", of)), *ask)
        self.assertEqual(p.returncode, 0, p.stderr)
        answers = json.loads(p.stdout)
        self.assertEqual([a["adapter"] for a in answers], ["base", "pirate", "poem"])
        for answer, options in zip(answers, ((), *(("--adapter", of) for of in adapters.values()))):
            alone = json.loads(weft("run", model, "Once upon a time", *options, *ask).stdout)
            self.assertEqual(answer["text"], alone["text"], options)


@needs_models
class Run(unittest.TestCase):
    def test_json_object(self):
        p = weft("run", STORIES, "Once upon a time", "-n", "12", "--temp", "0", "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        out = json.loads(p.stdout)
        self.assertEqual(len(out["tokens"]), 12)
        self.assertEqual(out["finish_reason"], "length")
        self.assertEqual(out["prompt_tokens"], 5)
        for key in ("load_ms", "prefill_ms", "prefill_tokens_per_second", "decode_ms", "decode_tokens_per_second"):
            self.assertGreater(out["timings"][key], 0, key)
        plain = weft("run", STORIES, "Once upon a time", "-n", "12", "--temp", "0")
        self.assertEqual(plain.stdout.decode(), out["text"] + "\n")
        self.assertIn(b"prefill 5 tokens", plain.stderr)
        self.assertNotIn(b"\x1b", plain.stderr + plain.stdout)

    def test_prompt_and_text_are_one_text(self):
        """The space between them is the first token's, unless there is nothing before it."""
        out = json.loads(weft("run", STORIES, "Once", "-n", "3", "--temp", "0", "--json").stdout)
        self.assertEqual(out["text"], " upon a time")
        self.assertEqual(weft("run", STORIES, "Once", "-n", "3", "--temp", "0").stdout, b" upon a time\n")
        ids = weft("tokenize", STORIES, "Once" + out["text"]).stdout.split()
        self.assertEqual([int(i) for i in ids[-3:]], out["tokens"])
        out = json.loads(weft("run", STORIES, "", "-n", "3", "--temp", "0", "--json").stdout)
        self.assertEqual(out["text"], "Once upon a")

    def test_seed_repeats_and_differs(self):
        def text(seed):
            return weft("run", STORIES, "Once", "-n", "30", "--temp", "1", "--seed", seed).stdout
        self.assertEqual(text("5"), text("5"))
        self.assertNotEqual(text("5"), text("6"))

    def test_stop_string_is_cut_even_across_tokens(self):
        whole = json.loads(weft("run", STORIES, "Once upon a time", "-n", "60", "--temp", "0", "--json").stdout)["text"]
        at = len(whole) // 2
        stop = whole[at:at + 7]
        p = json.loads(weft("run", STORIES, "Once upon a time", "-n", "60", "--temp", "0", "--json", "--stop", "@@", "--stop", stop).stdout)
        self.assertEqual(p["text"], whole[:whole.index(stop)])
        self.assertEqual(p["finish_reason"], "stop")

    def test_prompt_from_stdin(self):
        a = weft("run", STORIES, "-n", "8", "--temp", "0", stdin=b"Once upon a time").stdout
        b = weft("run", STORIES, "Once upon a time", "-n", "8", "--temp", "0").stdout
        self.assertEqual(a, b)

    def test_forbidden_token_never_comes(self):
        ids = json.loads(weft("run", STORIES, "Once upon a time", "-n", "20", "--temp", "0", "--json").stdout)["tokens"]
        out = json.loads(weft("run", STORIES, "Once upon a time", "-n", "20", "--temp", "0", "--json", "--logit-bias",
                              f"{ids[3]}=-inf").stdout)["tokens"]
        self.assertEqual(out[:3], ids[:3])
        self.assertNotIn(ids[3], out)

    def test_context_is_a_limit_with_a_remedy(self):
        p = weft("run", STORIES, "Once upon a time there was a little girl called Lily", "-c", "4")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"-c", p.stderr)
        out = json.loads(weft("run", STORIES, "Once", "-c", "16", "-n", "-1", "--ignore-eos", "--json").stdout)
        self.assertEqual(out["finish_reason"], "length")
        self.assertEqual(out["prompt_tokens"] + len(out["tokens"]), 17)  # the last one needs no place

    def test_interrupt_ends_with_the_text_so_far(self):
        p = subprocess.Popen(WEFT + ["run", STORIES, "Once upon a time", "-n", "-1", "-c", "100000", "--rope-scale", "200", "--ignore-eos", "-t", "1"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        first = p.stdout.read(20)  # it streams
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
        check_report(err)
        self.assertEqual(p.returncode, 0, err)
        self.assertEqual(len(first), 20)
        self.assertIn(b"cancelled", err)

    def test_eval_logits_agrees_with_the_golden(self):
        with open(shared("golden", "stories260K.tokens.txt")) as f:
            prompt = f.readline().split(":")[1].strip()
        with open(shared("golden", "stories260K.logits.f32"), "rb") as f:
            golden = f.read()
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "logits")
            p = weft("eval", "logits", STORIES, "--tokens", prompt, "-o", path)
            self.assertEqual(p.returncode, 0, p.stderr)
            with open(path, "rb") as f:
                got = f.read()
        self.assertEqual(len(got), len(golden))
        n = len(got) // 4
        a, b = struct.unpack(f"<{n}f", got), struct.unpack(f"<{n}f", golden)
        self.assertLess(max(abs(x - y) for x, y in zip(a, b)), 2e-3)
        p = weft("eval", "logits", STORIES, "--tokens", "1 9999", "-o", "-")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"9999", p.stderr)

    def test_info(self):
        p = weft("info", STORIES, "--json")
        out = json.loads(p.stdout)
        self.assertEqual(out["metadata"]["general.architecture"], "llama")
        self.assertEqual(len(out["metadata"]["tokenizer.ggml.tokens"]), 512)
        self.assertEqual(out["n_tensors"], len(out["tensors"]))
        text = weft("info", STORIES).stdout
        self.assertIn(b"token_embd.weight", text)
        self.assertIn(b"64 x 512", text)


@leave_out(THREADS_WATCHED and not WHOLE, "test_bench.py has what it measures with")
class Bench(unittest.TestCase):
    FIELDS = ("model_filename model_type model_size model_n_params n_batch n_ubatch n_threads type_k type_v n_prompt n_gen n_depth "
              "avg_ns stddev_ns avg_ts stddev_ts samples_ns samples_ts").split()

    def bench(self, *args):
        p = weft("bench", "--synthetic", "tiny", "-p", "32", "-n", "8", "-r", "2", "--again", "0", *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout.decode()

    def test_json_has_the_fields_of_llama_bench(self):
        rows = json.loads(self.bench("-o", "json", "-b", "1,3", "-d", "0,16"))
        self.assertEqual(len(rows), 6)
        for row in rows:
            for field in self.FIELDS:
                self.assertIn(field, row)
            self.assertEqual(len(row["samples_ns"]), 2)
            self.assertGreater(row["avg_ts"], 0)
        lines = self.bench("-o", "jsonl").splitlines()
        self.assertEqual([json.loads(l)["n_prompt"] for l in lines], [32, 0])

    def test_table_and_csv(self):
        table = self.bench("-d", "16")
        self.assertRegex(table, r"\| +pp32 @ d16 \| +[\d.]+ ± [\d.]+ \|")
        self.assertRegex(table, r"\| +tg8 @ d16 \|")
        head, row = self.bench("-o", "csv").splitlines()[:2]
        self.assertEqual(len(head.split(",")), len(row.split(",")))

    def test_csv_holds_any_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'a "model", small.gguf')
            self.assertEqual(weft("bench", "--synthetic", "tiny", "--write", path).returncode, 0)
            p = weft("bench", path, "-p", "4", "-n", "0", "-r", "1", "-o", "csv")
            (row,) = csv.DictReader(io.StringIO(p.stdout.decode()))
        self.assertEqual((row["model_filename"], row["n_prompt"], row["backends"]), (path, "4", "cpu"))

    def test_nothing_is_printed_before_there_is_something(self):
        for extra in ((), ("-o", "json"), ("-o", "csv"), ("--batched",)):
            p = weft("bench", "--synthetic", "gpt-9", *extra)
            self.assertEqual((p.returncode, p.stdout), (1, b""), extra)
            p = weft("bench", "--synthetic", "tiny", "-p", "0", "-n", "0,0", *extra)
            self.assertEqual((p.returncode, p.stdout), (2, b""), extra)
            self.assertIn(b"nothing to measure", p.stderr)

    @leave_out(EMULATED, "measuring under emulation says nothing")
    def test_roofline_names_a_limit_and_a_share(self):
        """Of one repetition, the share is that of the medians. Rows in JSON are those of test_bench.py: each run measures the machine."""
        p = weft("bench", "--synthetic", "tiny", "-p", "32", "-n", "8", "-o", "csv", "--roofline", "-r", "1", "--again", "0", "--no-warmup")
        self.assertEqual(p.returncode, 0, p.stderr)
        head, *rows = (line.split(",") for line in p.stdout.decode().splitlines())
        self.assertEqual(len(rows), 2)
        self.assertEqual(head[-5:], ["stolen", "others", "throttled", "disturbed", "left_out"])
        self.assertEqual(head[-10:-5], ["limit", "limit_ts", "share", "limit_read_ts", "limit_compute_ts"])
        for row in rows:
            named = dict(zip(head, row))
            self.assertEqual(len(row), len(head))
            self.assertGreater(min(float(named["limit_ts"]), float(named["share"])), 0)
            self.assertAlmostEqual(float(named["median_ts"]) / float(named["limit_ts"]), float(named["share"]), places=5)
        self.assertRegex(p.stderr.decode(), r"memory read +[\d.]+ +[\d.]+ GB/s")

    def test_unknown_shape_lists_the_known(self):
        p = weft("bench", "--synthetic", "gpt-9")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"tinyllama-1.1b", p.stderr)
        for shape in re.search(r"known: (.*)", p.stderr.decode()).group(1).split(", "):
            self.assertRegex(shape, r"^[\w.-]+$")


if __name__ == "__main__":
    main()
