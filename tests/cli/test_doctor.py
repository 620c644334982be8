# SPDX-License-Identifier: Apache-2.0
"""weft doctor tells what the machine has, as a table and as JSON; where cores have two threads it measures both, keeps which helps, and
run uses it.

usage: test_doctor.py build/weft"""
import json
import os
import subprocess
import tempfile
import unittest

from common import EMULATED, PATIENCE, WEFT, leave_out, main, needs, run

with open("/proc/cpuinfo") as cpuinfo:
    HAVE_AMX = "amx_int8" in cpuinfo.read()
TWO_THREADS = "core:2 pu:2"  # hwloc's notation; nothing is bound on a machine that is not there


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft-doctor-")
        self.addCleanup(folder.cleanup)
        self.cache = os.path.join(folder.name, "made", "later")
        self.kept = os.path.join(self.cache, "machines.json")

    def weft(self, *args, **more):
        ours = ("WEFT_THREADS", "WEFT_PLUGIN_PATH", "XDG_CACHE_HOME", "HWLOC_SYNTHETIC", "WEFT_CPU")
        env = {k: v for k, v in os.environ.items() if k not in ours}
        p = run(WEFT + list(args), stdin=subprocess.DEVNULL, timeout=PATIENCE, env={**env, "WEFT_CACHE": self.cache, **more})
        self.assertEqual(p.returncode, 0, p.stderr)
        return p

    def doctor(self, *args, **more):
        return json.loads(self.weft("doctor", "--json", *args, **more).stdout)

    def test_what_is_told_is_what_the_system_says(self):
        d = self.doctor("--no-measure")
        with open("/proc/meminfo") as f:
            total = int(f.readline().split()[1]) * 1024
        self.assertEqual(d["memory_bytes"], total)
        self.assertLessEqual(d["available_bytes"], total)
        self.assertEqual(d["processors"], len(os.sched_getaffinity(0)))
        self.assertLessEqual(d["cores"], d["processors"])
        self.assertIn("ref", d["tiers_found"])
        self.assertEqual(d["tiers_found"], d["tiers_used"])
        self.assertEqual((d["measured"], d["threads_per_core"]), ([], None))
        self.assertIn("tiers", [f["name"] for f in d["findings"]])
        for f in d["findings"]:
            self.assertTrue(f["state"] == "helps" or f["command"] or f["name"] == "huge-pages", f)
        text = self.weft("doctor", "--no-measure").stdout.decode()
        for word in ("processor", "memory", "huge pages", "plugins", d["tiers_used"][0]):
            self.assertIn(word, text)

    def test_a_masked_tier_and_a_broken_plugin_are_missing(self):
        os.makedirs(self.cache)
        with open(os.path.join(self.cache, "broken.so"), "w") as f:
            f.write("no library")
        d = self.doctor("--no-measure", WEFT_CPU="ref", WEFT_PLUGIN_PATH=self.cache + ":/nowhere")
        self.assertEqual(d["tiers_used"], ["ref"])
        findings = {f["name"]: f for f in d["findings"]}
        if d["tiers_found"] != ["ref"]:
            self.assertEqual((findings["tiers"]["state"], findings["tiers"]["command"]), ("missing", "unset WEFT_CPU"))
        self.assertIn("broken", findings["plugins"]["text"])
        self.assertEqual(d["plugins"], [])

    @leave_out(EMULATED, "half a gigabyte is read by emulated instructions")
    def test_two_threads_per_core_are_measured_and_what_was_found_is_kept(self):
        d = self.doctor(HWLOC_SYNTHETIC=TWO_THREADS)
        self.assertEqual((d["cores"], d["processors"]), (2, 4))
        self.assertEqual(d["threads"], 2 if d["quota_cpus"] is None or d["quota_cpus"] > 1 else 1)
        if d["threads_smt"] == 0:
            self.skipTest("the control group's quota leaves no time for a second thread")
        self.assertEqual([m["threads"] for m in d["measured"]], [2, 4])
        for m in d["measured"]:
            self.assertGreater(m["int8_dot_gops"]["median"] if m["int8_dot_gops"] else 1, 0)
        self.assertIn(d["threads_per_core"], (1, 2))
        with open(self.kept) as f:
            kept = json.load(f)
        self.assertEqual(list(kept.values()), [{"threads_per_core": d["threads_per_core"]}])

    def logits(self, model):
        return self.weft("eval", "logits", model, "--tokens", " ".join(str(3 + 5 * i) for i in range(70)), "-o", "-").stdout

    @needs(HAVE_AMX, "no AMX here")
    def test_either_of_amx_and_vnni_is_taken_with_the_same_bits(self):
        """By what was measured when a model was first loaded; a plan of the one is used by the other, and kept keys and values stay."""
        self.assertIsNone(self.doctor("--no-measure")["amx"])
        with tempfile.TemporaryDirectory(prefix="weft-doctor-") as folder:
            models = {kind: os.path.join(folder, kind + ".gguf") for kind in ("q4_0", "q4_k", "q8_0", "bf16")}
            for kind, model in models.items():
                self.weft("bench", "--synthetic", "tiny", "--type", kind, "--write", model)
            plan = os.path.join(folder, "q4_0.plan")
            before = {kind: self.logits(model) for kind, model in models.items()}
            told = self.doctor("--no-measure")
            if not told["amx"]:
                self.skipTest("this program has no kernels for AMX")
            with open(os.path.join(self.cache, "amx.txt")) as f:
                key = f.read().rsplit(":", 1)[0]
            self.weft("compile", models["q4_0"], plan)
            devices = set()
            for used, amx, below in ((True, 900000, 100000), (False, 100000, 900000)):
                with open(os.path.join(self.cache, "amx.txt"), "w") as f:
                    f.write(f"{key}: {amx} {below}\n")
                told = self.doctor("--no-measure")
                self.assertEqual(told["amx"], {"used": used, "gops": amx / 1000, "below_gops": below / 1000, "below": "avx512vnni"})
                self.assertEqual("amx" in told["tiers_used"], used)
                kernels = self.weft("info", "--plan", models["q4_0"]).stdout
                self.assertIn(b"matmul_q4_0_amx" if used else b"matmul_q4_0_avx512vnni", kernels)
                self.assertEqual({kind: self.logits(model) for kind, model in models.items()}, before)
                self.assertEqual(self.logits(plan), before["q4_0"])
                self.assertNotIn(b"compiled again", self.weft("run", plan, "hello", "-n", "1").stderr)
                devices.add(self.weft("devices", "--json").stdout)
                self.assertIn("AMX", self.weft("doctor", "--no-measure").stdout.decode())
            self.assertEqual(len(devices), 1, devices)  # by which kept keys and values are told apart
            forced = self.doctor("--no-measure", WEFT_CPU="amxbf16")
            self.assertIsNone(forced["amx"])
            self.assertIn("amx", forced["tiers_used"])
            self.assertIn(b"matmul_q4_0_amx", self.weft("info", "--plan", models["q4_0"], WEFT_CPU="amxbf16").stdout)

    def test_run_uses_what_was_kept_for_this_machine_alone(self):
        d = self.doctor("--no-measure", HWLOC_SYNTHETIC=TWO_THREADS)
        if d["threads_smt"] == 0:
            self.skipTest("the control group's quota leaves no time for a second thread")
        os.makedirs(self.cache)

        def threads(**more):
            p = self.weft("run", model, "Once", "-n", "1", HWLOC_SYNTHETIC=TWO_THREADS, **more)
            return int(p.stderr.decode().split(" threads")[0].split()[-1])

        def keep(processors, per_core):
            with open(self.kept, "w") as f:
                json.dump({f"{d['processor']}, 2 cores, {processors} processors": {"threads_per_core": per_core}}, f)

        model = os.path.join(self.cache, "m.gguf")
        self.weft("bench", "--synthetic", "tiny-128", "--write", model)
        self.assertEqual(threads(), 2)
        keep(4, 2)
        self.assertEqual(threads(), 4)
        self.assertEqual(threads(WEFT_THREADS="1"), 1)
        keep(8, 2)
        self.assertEqual(threads(), 2)
        keep(4, 1)
        self.assertEqual(threads(), 2)
        with open(self.kept, "w") as f:
            f.write("[")
        self.assertEqual(threads(), 2)


if __name__ == "__main__":
    main()
