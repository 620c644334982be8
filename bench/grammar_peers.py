# SPDX-License-Identifier: Apache-2.0
"""llguidance and xgrammar beside ours, for bench/grammar: the same schemas, tokens and texts, and what each does with every keyword of
grammar_schemas.KEYWORDS. They are installed with pip; of what xgrammar imports, torch and transformers are stood in for, since nothing of them is
used here. Each peer runs in a process of its own: this file, called with its name.

usage: grammar_peers.py PEER FOLDER ROUNDS NAME..."""
import importlib
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
PLACE = os.path.join(os.path.dirname(HERE), "build", "peers", "grammar")
PEERS = ("llguidance", "xgrammar")
NEEDS = ("numpy", "apache-tvm-ffi", "pydantic")  # of both
GOAL = 2  # times the faster one's mean


# ---- installing, and the comparison ----

def pip(*arguments, seconds):
    p = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", PLACE, "--upgrade", *arguments], capture_output=True,
                       text=True, timeout=seconds)
    return "" if p.returncode == 0 else (p.stderr.strip().splitlines() or ["it failed"])[-1]


def install():
    """Why they cannot be had; "": they are there."""
    done = os.path.join(PLACE, "complete")
    seconds = int(os.environ.get("WEFT_PIP_SECONDS") or 600)
    if os.path.exists(done):
        return ""
    if seconds == 0:
        return "not installed, and WEFT_PIP_SECONDS is 0"
    try:
        why = pip(*NEEDS, seconds=seconds) or pip("--no-deps", *PEERS, seconds=seconds)
    except subprocess.TimeoutExpired:
        why = f"not within {seconds} s"
    if why:
        return f"pip cannot install them here: {why}"
    with open(done, "w", encoding="utf-8"):
        return ""


def run(peer, folder, rounds, names):
    """By name, what it said; or why not."""
    environment = {**os.environ, "PYTHONPATH": PLACE, "PYTHONDONTWRITEBYTECODE": "1"}
    p = subprocess.run([sys.executable, os.path.abspath(__file__), peer, folder, str(rounds), *names], capture_output=True, text=True, env=environment)
    lines = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]
    return {line["test"]: line for line in lines}, "" if p.returncode == 0 else (p.stderr.strip().splitlines() or [f"status {p.returncode}"])[-1]


def compare(folder, files, rows, rounds):
    """Adds "peers" to each row: by peer, its figures. Prints what cannot be had."""
    why = install()
    if why:
        print(f"peers: skipped: {why}")
        return
    for peer in PEERS:
        said, failed = run(peer, folder, rounds, files.values())
        if failed:
            print(f"peers: {peer}: {failed}")
        for row in rows:
            one = said.get(files[row["test"]])
            if one:
                row.setdefault("peers", {})[peer] = {key: value for key, value in one.items() if key != "test"}


def keyword_table(folder, files, own, rounds):
    """For each keyword, a word for each engine. own: lines of bench_grammar --takes, by file name."""
    from grammar_schemas import KEYWORDS
    said = {"weft": own, **{peer: run(peer, folder, rounds, ["--takes", *files.values()])[0] for peer in PEERS}}
    return {name: {engine: verdict(said[engine].get(files[name]), len(valid), len(invalid)) for engine in said}
            for name, (schema, valid, invalid) in KEYWORDS.items()}


def verdict(line, n_valid, n_invalid):
    """holds: takes what is valid and nothing else; narrow: not all that is valid; loose: some that is not; refused: says that it cannot."""
    if line is None:
        return "failed"
    if "refused" in line:
        return "refused"
    valid, invalid = line["takes"][:n_valid], line["takes"][n_valid:n_valid + n_invalid]
    return "loose" if any(invalid) else "holds" if all(valid) else "narrow"


# ---- a peer ----

class Llguidance:
    def __init__(self, end, tokens):
        import llguidance
        import numpy
        self.library, ids = llguidance, {token: i for i, token in enumerate(tokens)}

        class Vocabulary:
            eos_token_id, bos_token_id, special_token_ids = end, None, [end]

            def __call__(self, text):
                return [ids[bytes([byte])] for byte in (text.encode() if isinstance(text, str) else text)]
        Vocabulary.tokens = tokens
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Vocabulary()))
        self.bits = numpy.zeros((self.tokenizer.vocab_size + 31) // 32, dtype=numpy.int32)

    def compile(self, schema):
        grammar = self.library.LLMatcher.grammar_from_json_schema(schema)
        limits = self.library.LLParserLimits(initial_lexer_fuel=10**9, step_lexer_fuel=10**9, max_items_in_row=10**6) \
            if hasattr(self.library, "LLParserLimits") else None
        self.matcher = self.library.LLMatcher(self.tokenizer, grammar, log_level=0, **({"limits": limits} if limits else {}))
        if self.matcher.is_error():
            raise ValueError(self.matcher.get_error())

    def begin(self):
        self.matcher.reset()

    def mask(self):
        self.matcher.unsafe_compute_mask_ptr(self.bits.ctypes.data, self.bits.nbytes)

    def accept(self, token):
        return self.matcher.consume_token(token)

    def may_end(self):
        return self.matcher.is_accepting()


class Xgrammar:
    def __init__(self, end, tokens):
        import numpy
        stand_in()
        import xgrammar
        self.library = xgrammar
        self.info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[end])
        self.bits = numpy.zeros((1, (len(tokens) + 31) // 32), dtype=numpy.int32)

    def compile(self, schema):
        compiler = self.library.GrammarCompiler(self.info, max_threads=1, cache_enabled=False)
        self.compiled = compiler.compile_json_schema(schema, strict_mode=False)

    def begin(self):
        self.matcher = self.library.GrammarMatcher(self.compiled)

    def mask(self):
        self.matcher.fill_next_token_bitmask(self.bits)

    def accept(self, token):
        return self.matcher.accept_token(token)

    def may_end(self):
        self.mask()
        end = self.info.stop_token_ids[0]
        return bool(self.bits[0][end // 32] >> (end % 32) & 1)


def stand_in():
    """Modules of the names that xgrammar imports, with what it asks for while it is imported. What it stands on does without them."""
    importlib.import_module("tvm_ffi")
    torch, transformers = types.ModuleType("torch"), types.ModuleType("transformers")
    torch.int32, torch.tensor = "int32", lambda *a, **k: None
    for module in (torch, transformers):  # classes of every name
        module.__getattr__ = lambda name: type(name, (), {})
    sys.modules.update({"torch": torch, "transformers": transformers})


def read(folder):
    with open(os.path.join(folder, "vocabulary"), encoding="utf-8") as f:
        lines = f.read().split("\n")
    end, tokens = int(lines[0]), [bytes.fromhex(line) for line in lines[1:-1]]
    return end, [token or b"<|%d|>" % i for i, token in enumerate(tokens)]


def schema_of(folder, name):
    path = os.path.join(folder, name + ".json")
    if not os.path.exists(path):
        return '{"type": "object"}'
    with open(path, encoding="utf-8") as f:
        return f.read()


def ids_of(folder, name):
    with open(os.path.join(folder, name + ".ids"), encoding="utf-8") as f:
        return [list(map(int, line.split())) for line in f]


def follow(engine, texts):
    """Microseconds of each mask, and how many texts were not taken."""
    times, refused = [], 0
    for ids in texts:
        engine.begin()
        for token in ids:
            begin = time.perf_counter_ns()
            engine.mask()
            times.append((time.perf_counter_ns() - begin) / 1e3)
            if not engine.accept(token):
                refused += 1
                break
    return times, refused


def measure(engine, schema, texts, rounds):
    figures = {"compile_ms": [], "first_us": [], "mask_mean_us": [], "mask_p99_us": [], "again_us": []}
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        engine.compile(schema)
        figures["compile_ms"].append((time.perf_counter_ns() - begin) / 1e6)
        begin = time.perf_counter_ns()
        engine.begin()
        engine.mask()
        figures["first_us"].append((time.perf_counter_ns() - begin) / 1e3)
        times, refused = follow(engine, texts)
        again, _ = follow(engine, texts)
        figures["mask_mean_us"].append(statistics.mean(times))
        figures["mask_p99_us"].append(sorted(times)[int(0.99 * (len(times) - 1))])
        figures["again_us"].append(statistics.mean(again))
    return {**{key: round(statistics.median(values), 3) for key, values in figures.items()}, "not_taken": refused}


def takes(engine, texts):
    out = []
    for ids in texts:
        engine.begin()
        out.append(int(all(engine.accept(token) for token in ids) and engine.may_end()))
    return out


def main():
    peer, folder, rounds, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    engine = {"llguidance": Llguidance, "xgrammar": Xgrammar}[peer](*read(folder))
    only_takes = names[0] == "--takes"
    for name in names[1:] if only_takes else names:
        texts, line = ids_of(folder, name), {"test": name, "version": importlib.metadata.version(peer)}
        try:
            if only_takes:
                engine.compile(schema_of(folder, name))
                line["takes"] = takes(engine, texts)
            else:
                line.update(measure(engine, schema_of(folder, name), texts, rounds))
        except Exception as e:  # what a schema is refused with differs by peer
            line["refused"] = str(e).splitlines()[0][:200] if str(e) else type(e).__name__
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
