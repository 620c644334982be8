# SPDX-License-Identifier: Apache-2.0
"""What the scripts of bench/ share: the machine; for servers, their processes, plans for bench_load, and what its results say."""
import json
import math
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request

COLOURS = {"weft": "#1f6f8b", "llama.cpp": "#c9a227"}


class Server:
    """A server's process; ready when it answers /health. Its output goes to a file that is shown when it fails."""

    def __init__(self, command, port=0, limit=120):
        self.log = tempfile.NamedTemporaryFile("w+", prefix="serve-", suffix=".log")
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        self.port = port
        until = time.time() + limit
        while time.time() < until and not self.ready():
            if self.process.poll() is not None:
                sys.exit(f"{' '.join(map(str, command))}\n{self.output()[-2000:]}")
            time.sleep(0.05)
        if not self.ready():
            self.process.kill()
            sys.exit(f"{command[0]} did not answer within {limit} s\n{self.output()[-2000:]}")

    def output(self):
        with open(self.log.name, errors="replace") as file:
            return file.read()

    def ready(self):
        if not self.port: # weft serve says which one it was given
            found = re.search(r"http://[^:\s]+:(\d+)", self.output())
            self.port = int(found.group(1)) if found else 0
        try:
            return bool(self.port) and self.get("/health") is not None
        except OSError:
            return False

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return answer.read().decode()

    def metric(self, name):
        return float(re.search(r"^%s (\S+)$" % re.escape(name), self.get("/metrics"), re.M).group(1))

    def metric_sum(self, name):
        """Of what has labels."""
        return sum(float(n) for n in re.findall(r"^%s\{.*\} (\S+)$" % re.escape(name), self.get("/metrics"), re.M))

    def rss_kb(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

    def cpu_s(self):
        """Seconds of processor time that it has used."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, limit=60):
        """Its exit status after SIGTERM."""
        self.process.terminate()
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


# ---- plans ----

def completion(prompt, n_predict, **more):
    """A request that both servers understand: llama.cpp's /completion as a stream."""
    return post("/completion", {"prompt": prompt, "n_predict": n_predict, "stream": True, "temperature": 0, "ignore_eos": True, **more})


def post(path, body):
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def play(load, port, plan, seconds=0, patience=600):
    """Runs a plan, a list of (client, at_ms, mode, arg, bytes of the request). Returns its results in the order in which they ended, and
    the share of one core that the clients took."""
    head, last = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (last, last))
    text = b"".join(b"%d %d %s %d %d\n%s\n" % (c, at, mode.encode(), arg, len(data), data) for c, at, mode, arg, data in plan)
    p = subprocess.run([load, "127.0.0.1", str(port), "-s", str(seconds), "-t", str(patience)], input=text, stdout=subprocess.PIPE, check=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (head, last))
    lines = [json.loads(line) for line in p.stdout.split(b"\n") if line]
    return lines[:-1], lines[-1]["cpu_us"] / max(1, lines[-1]["wall_us"])


# ---- results ----

def cpu():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def default_threads(weft):
    """What weft takes by itself: one thread per core that this process may use."""
    try:
        p = subprocess.run([weft, "bench", "--synthetic", "tiny", "-p", "1", "-n", "0", "-r", "1", "-o", "json"], stdout=subprocess.PIPE, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{weft} cannot be run, `make` builds build/weft: {error}")
    return json.loads(p.stdout)[0]["n_threads"]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def percentile(values, share):
    """The value below or at which a share of them lies; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def gaps_ms(results):
    return [(b - a) / 1000 for r in results for a, b in zip(r["events"], r["events"][1:])]


def first_ms(results):
    return [(r["events"][0] - r["begin"]) / 1000 for r in results if r["events"]]


def rate_together(results):
    """Tokens per second while all of them were being generated: from the latest first token to the earliest last one."""
    begin, end = max(r["events"][0] for r in results), min(r["events"][-1] for r in results)
    n = sum(1 for r in results for t in r["events"] if begin < t <= end)
    return n / ((end - begin) / 1e6) if end > begin else 0.0
