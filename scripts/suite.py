# SPDX-License-Identifier: Apache-2.0
"""What the suite consists of, for scripts/test: each test's room, source and claim, what each part takes, the record of that
(bench/history/suite.json), what exceeds it, and the table made of both (docs/howto/test.md)."""
import datetime
import json
import os
import re
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORD = os.path.join(ROOT, "bench", "history", "suite.json")
TABLE = os.path.join(ROOT, "docs", "howto", "test.md")
# Seconds that everything of `make test` may take, by whether the compiler cache was warm.
LIMIT = {"warm": 900, "cold": 1200}
CHECK_LIMIT = 240  # and of `make check`
# A test exceeds its record when it takes this many times as long, and as many seconds more; all of them together when they take more than
# an issue may add.
TIMES, MORE = 1.5, 2
ADDED = 60


def folder(preset):
    """Where a preset is built."""
    return os.path.join(ROOT, {"release": "build", "aarch64": "build-aarch64/build"}.get(preset, f"build-{preset}"))


# ---- what tests there are ----

def sentence(text):
    """The first sentence of a comment or docstring, in one line."""
    text = " ".join(text.split())
    text = re.sub(r"^[\w./-]+\.(c|h|py|sh): *", "", text)  # a file names itself first
    text = re.split(r"(?<=[^.\s][a-z0-9)\]])[.;](?= |$)| usage:", text, maxsplit=1, flags=re.I)[0].strip(" .:")
    return text[:1].upper() + text[1:]


def claim_of(path):
    """What a test's source says in its first comment."""
    with open(os.path.join(ROOT, path), errors="replace") as f:
        head = re.sub(r"^# SPDX-License.*\n", "", f.read(4000), flags=re.M)
    shell = path.endswith(".sh") or re.match(r"#!.*\b(ba|da)?sh\b", head)
    pattern = r"^#(?!!)(.*(?:\n#.*)*)" if shell else r"/\*(.*?)\*/" if path.endswith(".c") else r'"""(.*?)"""'
    found = re.search(pattern, head, re.M if shell else re.S)
    return sentence(re.sub(r"^ *[*#]", " ", found.group(1), flags=re.M)) if found else ""


def claim_of_group(path, group):
    """What the class of that name says in a script of tests; empty where there is none."""
    if not path.endswith(".py") or not group.isidentifier():
        return ""
    with open(os.path.join(ROOT, path)) as f:
        found = re.search(rf'^class {group}\([\w.]*\):\n    """(.*?)"""', f.read(), re.S | re.M)
    return sentence(found.group(1)) if found else ""


def room_of(path, listed_in):
    """The room that a test is of: the folder of src/ that registers it, or its own folder of tests/."""
    parts = os.path.relpath(listed_in, ROOT).split(os.sep)
    if parts[0] == "src":
        return parts[1]
    return path.split("/")[1] if path.startswith("tests/") and path.count("/") > 1 else parts[0]


def sources(preset):
    """Files of tests and benchmarks, by the program that is compiled of them."""
    programs = {}
    with open(os.path.join(folder(preset), "compile_commands.json")) as f:
        for entry in json.load(f):
            program = re.search(r"CMakeFiles/(\w+)\.dir/", entry.get("output") or entry["command"])
            path = os.path.relpath(entry["file"], ROOT)
            if program and path.startswith(("tests/", "bench/")):
                programs.setdefault(program.group(1), path)
    return programs


def tests_of(preset):
    """{name: {room, source, claim, program, labels}} of all tests that a configured preset has."""
    text = subprocess.run(["ctest", "--test-dir", folder(preset), "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listing, programs, tests = json.loads(text), sources(preset), {}
    graph = listing["backtraceGraph"]
    for test in listing["tests"]:
        command = test.get("command") or []
        paths = [os.path.relpath(word, ROOT) for word in command if os.path.isfile(word) and word.startswith(ROOT + os.sep)
                 and not os.path.relpath(word, ROOT).startswith("build")]
        program = next((os.path.basename(word) for word in command if os.path.dirname(word) == folder(preset)), None)
        path = paths[0] if paths else programs.get(program, "")
        properties = {p["name"]: p["value"] for p in test.get("properties", ())}
        node = graph["nodes"][test["backtrace"]]
        while "CMakeLists.txt" not in graph["files"][node["file"]] and "parent" in node:
            node = graph["nodes"][node["parent"]]
        claim = claim_of_group(path, command[-1]) or claim_of(path) if path else ""
        more = [word.replace(ROOT + os.sep, "") for word in properties.get("ENVIRONMENT", ()) if word.startswith("WEFT_")]
        if "material" in (*command[-1:], test["name"].rsplit("_", 1)[-1].split("-")[0]) or "--material" in command:
            more.append("what needs material")
        tests[test["name"]] = {"room": room_of(path, graph["files"][node["file"]]), "source": path, "program": program,
                               "claim": claim + (f" ({', '.join(more)})" if more else ""), "labels": properties.get("LABELS", [])}
    return tests


# ---- what parts take ----

def compiled(preset, since):
    """Seconds of compiling and linking by room, of what was built after `since`: those of all processors together."""
    rooms = {}
    try:
        with open(os.path.join(folder(preset), ".ninja_log")) as f:
            entries = [line.split("\t") for line in f.read().splitlines() if not line.startswith("#")]
    except OSError:
        return rooms
    for begin, end, written, output, *_ in entries:
        if int(written) / 1e9 >= since - 1:
            parts = output.split("/")
            room = parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0] if len(parts) > 1 else "linking"
            rooms[room] = rooms.get(room, 0) + (int(end) - int(begin)) / 1000
    return rooms


def by_room(preset, seconds, since):
    """{room: [seconds compiling, seconds of its tests]}: of processors, and of tests that run side by side."""
    tests, rooms = tests_of(preset), {room: [took, 0] for room, took in compiled(preset, since).items()}
    for name, took in seconds.items():
        room = tests.get(name, {}).get("room", "?")
        rooms.setdefault(room, [0, 0])[1] += took
    return dict(sorted(rooms.items(), key=lambda item: -sum(item[1])))


def cache_counts():
    """Compilations that the cache answered, and that it did not, since it was set up."""
    try:
        text = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    counts = dict(line.split("\t") for line in text.splitlines() if "\t" in line)
    return [sum(int(counts.get(key, 0)) for key in keys) for keys in (("direct_cache_hit", "preprocessed_cache_hit"), ("cache_miss",))]


def cache_state(before):
    """"warm" when most of what was compiled since then came from the cache, "cold" otherwise."""
    after = cache_counts()
    if not before or not after:
        return "cold"
    hits, misses = (now - then for then, now in zip(before, after))
    return "warm" if hits >= misses else "cold"


# ---- the record ----

def read_record():
    try:
        with open(RECORD) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {"parts": {}, "tests": {}}


def cpu():
    with open("/proc/cpuinfo") as f:
        found = re.search(r"^model name\s*: *(.*)$", f.read(), re.M)
    return found.group(1) if found else os.uname().machine


def write_record(parts, seconds, rooms, total, cache, whole):
    """Keeps what a run took. A run of everything (whole: test-all) adds what `make test` does not have."""
    record = read_record()
    kept = {k: {n: round(s, 1) for n, s in v.items()} for k, v in parts.items()}
    machine = {"date": datetime.date.today().isoformat(), "cpu": cpu(), "cores": len(os.sched_getaffinity(0)), "total": round(total)}
    if whole:
        record.update({"all": {name: round(took, 1) for name, took in sorted(seconds.items())}, "all_parts": kept, "all_of": machine})
    else:
        record["seen"] = {**record.get("seen", {}), f"{machine['cpu']}, {cache}": machine}
        record.update({**machine, "cache": cache, "parts": kept,
                       "rooms": {k: {n: [round(s, 1) for s in pair] for n, pair in v.items()} for k, v in rooms.items()},
                       "tests": {name: round(took, 2) for name, took in sorted(seconds.items())}})
    with open(RECORD, "w") as f:
        f.write(re.sub(r"\[\s+([\d.]+),\s+([\d.]+)\s+\]", r"[\1, \2]", json.dumps(record, indent=1)) + "\n")
    return record


def exceeding(seconds, total=0, cache="", whole=False):
    """What takes longer than the record of such a run (whole: test-all) allows on a machine that is as quick as this one, in lines; and how
    much slower this one is: never where the record is of the same processor. Of a configuration that the record lacks nothing is said.
    total: seconds of all of `make test`, 0 where only parts of it ran."""
    record = read_record()
    known = {**record["tests"], **record.get("all", {})} if whole else record["tests"]
    recorded = {name.split("/")[0] for name in (record.get("all", {}) if whole else known)}
    seconds = {name: took for name, took in seconds.items() if name.split("/")[0] in recorded}
    ratios = [took / known[name] for name, took in seconds.items() if known.get(name, 0) >= 1]
    slower = max(1.0, statistics.median(ratios)) if ratios and record.get("cpu") != cpu() else 1.0
    lines = []
    for name, took in sorted(seconds.items()):
        if name not in known:
            lines.append(f"not in the table: {name}, {took:.1f} s")
        elif took > TIMES * slower * known[name] + MORE:
            lines.append(f"longer than in the table: {name}, {took:.1f} s; {known[name]:.1f} there")
    before = record.get("seen", {}).get(f"{record.get('cpu')}, {cache}", {}).get("total")
    if total and before and total > slower * (before + ADDED):
        lines.append(f"all of it takes {total:.0f} s, {before} in the table: more than the {ADDED} s that an issue may add")
    return lines, slower


# ---- the table ----

# What is no test of CTest's: by the name of the stage (scripts/test), its source, and whether `make test` has it.
PROGRAMS = {"check-layers": ("scripts/check-layers", True), "check-names": ("scripts/check-names", True), "check-limits": ("scripts/check-limits", True),
            "check-headers": ("scripts/check-headers", True), "check-format": ("scripts/check-format", True),
            "faults": ("tests/faults/run", False), "kill-store": ("tests/server/kill_store.py", False),
            "install-check": ("tests/house/install_check", False), "deb-check": ("tests/house/deb_check", False),
            "dist-check": ("tests/house/dist_check", False), "python-check": ("tests/house/python_check", False),
            "upgrade-check": ("tests/house/upgrade_check", False), "page-check": ("tests/page/run", False),
            "deploy-check": ("scripts/deploy-check", False), "soak": ("bench/soak", False),
            "soak-models": ("tests/server/test_models_real.py", False)}
HEAD = """# The tests

Made by `scripts/test --table` from the first comment of each test and from `bench/history/suite.json`; edit those. `test` is `make test`,
`all` is `make test-all`, which has everything of `make test` and more. A name stands for the test in each configuration: `ctest --preset
release -R '^NAME$'` runs it alone, after `cmake --preset release && cmake --build --preset release`. Seconds are those of the release
configuration, or of the first one named, on the machine of the record.

"""


def table(tests, record):
    """The text of docs/howto/test.md: `tests` as tests_of gives them, from all configurations that there are."""
    usual, long = record["tests"], record.get("all", {})
    lines = [HEAD + f"Record of {record.get('date')}: {record.get('cpu')}, {record.get('cores')} cores, compiler cache {record.get('cache')}, "
             f"{record.get('total')} s in all.\n\n| part | configure | build | tests | beside earlier tests |\n| --- | ---: | ---: | ---: | ---: |\n"]
    steps = ("configure", "build", "tests", "ahead")
    lines += [f"| {name} | " + " | ".join(str(took.get(step, "")) for step in steps) + " |\n" for name, took in record["parts"].items()]
    lines.append(
        "\nSeconds of all of `make test` on the machines where it was recorded:\n\n| processor, compiler cache | cores"
        " | date | s |\n| --- | ---: | --- | ---: |\n"
    )
    lines += [f"| {name} | {of['cores']} | {of['date']} | {of['total']} |\n" for name, of in sorted(record.get("seen", {}).items())]
    if "all_of" in record:
        lines.append("\nOf `make test-all`: {cpu}, {cores} cores, {date}, {total} s.\n".format(**record["all_of"]))
    rooms = {}
    for name, test in tests.items():
        rooms.setdefault(test["room"], []).append(name)
    for room in sorted(rooms):
        lines.append(f"\n## {room}\n\n| test | claims | test | all | s |\n| --- | --- | --- | --- | ---: |\n")
        for name in sorted(rooms[room]):
            where = [[key.split("/", 1)[0] for key in kept if key.split("/", 1)[1] == name] for kept in (usual, long)]
            order = [preset for preset in ("release", "asan", "tsan", "aarch64", "emulated", "debug")]
            where = [sorted(presets, key=order.index) for presets in where]
            first = (where[0] or where[1] or [""])[0]
            took = usual.get(f"{first}/{name}", long.get(f"{first}/{name}", ""))
            claim = tests[name]["claim"].replace("|", "\\|")
            lines.append(f"| {name} | {claim} | {', '.join(where[0])} | {', '.join(where[1])} | {took} |\n")
    return "".join(lines + [fuzz_table(), programs_table({**record.get("all_parts", {}), **record["parts"]})])


def fuzz_table():
    """The fuzz targets: each runs for as long as the run gives all of them."""
    lines = [
        "\n## fuzz\n\nEach target gets 1 second in `make test`, 60 in `make test-all`; FUZZ_SECONDS says otherwise.\n\n| target | claims |\n| --- | --- |\n"
    ]
    folder_of_targets = os.path.join("tests", "fuzz")
    for name in sorted(name for name in os.listdir(os.path.join(ROOT, folder_of_targets)) if name.endswith(".c")):
        claim = claim_of(os.path.join(folder_of_targets, name)).replace("|", "\\|")
        lines.append(f"| {name[:-2]} | {claim} |\n")
    return "".join(lines)


def programs_table(parts):
    """The checks that are programs of their own."""
    lines = ["\n## checks\n\n| check | claims | test | all | s |\n| --- | --- | --- | --- | ---: |\n"]
    for name, (source, usual) in PROGRAMS.items():
        claim, took = claim_of(source).replace("|", "\\|"), parts.get(name, {}).get("tests") or parts.get(name, {}).get("ahead", "")
        lines.append(f"| {name} | {claim} | {'yes' if usual else ''} | yes | {took} |\n")
    return "".join(lines)
