# SPDX-License-Identifier: Apache-2.0
"""What others take of the time while a script of bench/ measures: the host of a virtual machine (stolen), other processes (others), the
quota of a control group (throttled). src/base/taken.h says the same of one process; weft bench prints it. Unknown is None, never 0.
WEFT_HOST_ROOT stands before the paths of /proc and /sys, for tests."""
import os
import time

MOST = 0.03      # above this share of the time, what was measured is not to be judged
IN_A_ROW = 3     # rounds more that were no better: then it does not help
NOT_JUDGED = 75  # exit status of a check that could not judge, and in which nothing was missed (EX_TEMPFAIL)
PARTS = ("stolen", "others", "throttled")
ROOT = os.environ.get("WEFT_HOST_ROOT", "")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


# ---- counters ----

def parse_stat(text, cpus):
    """How many of these CPUs are in a text as /proc/stat, and for how many seconds they were idle and stolen."""
    n, idle, stolen = 0, 0.0, 0.0
    for line in text.splitlines():
        name, *ticks = line.split() or [""]
        if not name.startswith("cpu"):
            break  # they come first
        if not name[3:].isdigit() or int(name[3:]) not in cpus:
            continue
        n += 1
        try:
            idle = None if idle is None else idle + (int(ticks[3]) + int(ticks[4])) * TICK_S
            stolen = None if stolen is None else stolen + int(ticks[7]) * TICK_S
        except (IndexError, ValueError):
            stolen = None
            idle = idle if len(ticks) > 4 else None
    return (n, idle, stolen) if n else (0, None, None)


def throttled_s(root=ROOT):
    """Seconds that quotas have taken from the groups that this process is in; None where no group tells."""
    total = None
    try:
        with open(root + "/proc/self/cgroup") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    for _, controllers, group in (g for g in groups if len(g) == 3 and (g[1] == "" or "cpu" in g[1].split(","))):
        mount = root + "/sys/fs/cgroup" + ("/cpu" if controllers else "")
        parts = [part for part in group.split("/") if part]
        for depth in range(len(parts) + 1):
            try:
                with open(os.path.join(mount, *parts[:depth], "cpu.stat")) as file:
                    stat = dict(line.split() for line in file if len(line.split()) == 2)
                total = (total or 0) + int(stat.get("throttled_usec", 0)) / 1e6 + int(stat.get("throttled_time", 0)) / 1e9
            except (OSError, ValueError):
                pass
    return total


def cores(cpus):
    """Of how many cores these CPUs are."""
    seen = set()
    for cpu in cpus:
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
                seen.add(file.read().strip())
        except OSError:
            seen.add(cpu)
    return len(seen)


class Mark:
    """The counters at one moment. own(): seconds of processor time of what is measured besides this process and its children that ended."""

    def __init__(self, own=lambda: 0.0):
        self.cpus = os.sched_getaffinity(0)
        try:
            with open(ROOT + "/proc/stat") as file:
                text = file.read()
        except OSError:
            text = ""
        self.n_cpus, self.idle, self.stolen = parse_stat(text, self.cpus)
        self.throttled = throttled_s()
        self.own = own() + sum(os.times()[:4])
        self.wall = time.monotonic()

    def taken(self, threads, own=lambda: 0.0):
        """What was taken since."""
        return between(self, Mark(own), threads)


def between(a, b, threads):
    """Shares of the time that so many threads could have had between two marks. Others take nothing while they fit on cores that are left
    free; counters that went backwards stood still."""
    wall, known = b.wall - a.wall, a.n_cpus == b.n_cpus > 0
    least_0 = lambda x, y: None if x is None or y is None else max(0.0, y - x)
    seconds = wall * (min(threads, b.n_cpus) if known else threads)
    taken = {"seconds": seconds, "stolen": None, "others": None, "throttled": least_0(a.throttled, b.throttled)}
    if known:
        idle, taken["stolen"] = least_0(a.idle, b.idle), least_0(a.stolen, b.stolen)
        if idle is not None:
            wanted = wall * (b.n_cpus - max(0, cores(b.cpus) - threads))
            taken["others"] = max(0.0, wanted - idle - (taken["stolen"] or 0) - max(0.0, b.own - a.own))
    for part in PARTS:
        if taken[part] is not None:
            taken[part] = min(taken[part] / seconds, 1.0) if seconds > 0 else None
    return taken


# ---- what it means ----

def share(taken):
    """Of the time, all that is known together; None where nothing is."""
    known = [taken[part] for part in PARTS if taken.get(part) is not None]
    return sum(known) if known else None


def above(taken, most=MOST):
    """Too much to judge by? Two ticks are no evidence; of its own rows weft bench knows that itself."""
    total = share(taken)
    if total is None or total <= most:
        return False
    return taken["disturbed"] > 0 if "disturbed" in taken else total * taken["seconds"] > 2 * TICK_S


def mean(all_taken):
    """Of several rounds: part by part, of those in which it is known."""
    known = {part: [t[part] for t in all_taken if t.get(part) is not None] for part in PARTS}
    return {part: sum(values) / len(values) if values else None for part, values in known.items()}


def text(taken, marked):
    """For a table: "12.5 % stolen *"."""
    total = share(taken)
    if total is None:
        return "unknown"
    most = max(PARTS, key=lambda part: taken.get(part) or 0)
    return f"{100 * total:.1f} %" + (f" {most}" if total >= 0.01 else "") + (" *" if marked else "")


NOTE = f"* of so much of the time the host (stolen), other processes (others) or a quota (throttled) took more than {100 * MOST:g} %: not figures to judge by"


class Again:
    """Which rounds to measure again: at most so many in all, and only while that helps."""

    def __init__(self, most):
        self.left, self.in_a_row = most, 0

    def wanted(self, disturbed):
        self.in_a_row = self.in_a_row + 1 if disturbed else 0
        if self.in_a_row > IN_A_ROW:
            self.left = 0
        if not disturbed or self.left <= 0:
            return False
        self.left -= 1
        return True


def enough(quiet, rounds):
    """Are so many undisturbed rounds enough to judge by?"""
    return quiet > 0 and 2 * quiet >= rounds
