# SPDX-License-Identifier: Apache-2.0
"""`weft serve` with weft.yaml: --check says all that is wrong in it, its settings are options that the command line overrides, and the file
of docs/howto/configure.md does what is said of it; `weft key` makes keys for it. usage: test_configured.py build/weft"""
import hashlib
import os
import re
import signal
import subprocess
import tempfile
import unittest

import real
from servers import CHAT, EMULATOR, PATIENCE, PROGRAM, ROOT, Server, user, wait_until

WEFT = [*EMULATOR, PROGRAM]
OPERATOR, ANNA = ({"Authorization": f"Bearer an-example-of-a-key-{i}"} for i in (1, 2))


def weft(*args, **more):
    return subprocess.run([*WEFT, *args], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, **more)


def example():
    with open(os.path.join(ROOT, "docs/howto/configure.md")) as f:
        return re.search(r"^```yaml\n(.*?)^```", f.read(), re.M | re.S).group(1)


class Configured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "weft.yaml")

    def write(self, text):
        with open(self.path, "w") as f:
            f.write(text)

    def serve(self, *options):
        server = Server([*WEFT, "serve", "--config", self.path, *options], cwd=ROOT)
        self.addCleanup(lambda: server.process.stdout.closed or real.checked_stop(server))
        return server

    def test_the_example(self):
        self.write(example())
        p = weft("serve", "--check", "--config", self.path)
        self.assertEqual((p.returncode, p.stderr), (0, ""), p)
        self.assertIn("nothing is wrong in it: 5 settings of the server, 1 model, 2 presets, 1 organisation, 2 keys", p.stdout)
        server = self.serve("--port", "0", "--threads", "2")  # the command line goes before the file
        self.assertNotIn(":8080", server.address)
        def models(who):
            return [m["id"] for m in server.get("/v1/models", headers=who).json["data"]]
        self.assertEqual(models(OPERATOR), ["alderbrook", "pirate", "poem", "storyteller", "captain"])
        self.assertEqual(models(ANNA), ["storyteller", "captain"])
        self.assertEqual(server.get("/props", headers=OPERATOR).json["total_slots"], 8)
        self.assertEqual(server.get("/props").status, 401)
        def say(who=ANNA, **more):
            answer = server.post(CHAT, {"messages": user("What does the miller do?"), "max_tokens": 12, **more}, headers=who)
            self.assertEqual(answer.status, 200, answer.body)
            return answer.json["choices"][0]["message"]["content"]
        adapters = {a["name"]: a["id"] for a in server.get("/lora-adapters", headers=OPERATOR).json}
        plain = say(OPERATOR, model="alderbrook", temperature=0)
        captain = say(model="captain")
        self.assertEqual(captain, say(OPERATOR, model="alderbrook", temperature=0, lora=[{"id": adapters["pirate"], "scale": 0.9}]))
        self.assertNotEqual(captain, plain)
        told = [{"role": "system", "content": "You tell short stories about the village of Alderbrook."}, *user("What does the miller do?")]
        self.assertEqual(say(model="storyteller", temperature=0), say(OPERATOR, model="alderbrook", messages=told, temperature=0, top_p=0.9))
        self.assertEqual(server.post(CHAT, {"messages": user("x"), "model": "alderbrook"}, headers=ANNA).status, 404)

    def test_a_model_with_a_draft_model(self):
        """It comes with its model, also under --memory, and answers stay the same; another vocabulary, and auto, are faults by name."""
        text = "server: {memory: 200M}\nmodels:\n  first: {path: %s}\n  second: {path: %s, options: {%s}}\n"
        body = {"prompt": "Once upon a time", "n_predict": 48, "temperature": 0.8, "seed": 3, "ignore_eos": True}
        told = {}
        for options in ("ctx: 256", f"ctx: 256, draft: {real.MODEL}, spec: draft"):
            self.write(text % (real.MODEL, real.MODEL, options))
            server = self.serve("--port", "0", "--threads", "2")
            answer = server.post("/completion", {"model": "second", **body})
            self.assertEqual(answer.status, 200, answer.body)
            told[options] = answer.json
            listed = {m["id"]: m for m in server.get("/v1/models").json["data"]}
            told[options]["memory"] = listed["second"]["memory"]
            told[options]["asked"] = sum(float(t) for t in re.findall(r"^weft_draft_seconds_total\S* (\S+)$",
                                                                server.get("/metrics").body.decode(), re.M))
            real.checked_stop(server)
        plain, drafted = told.values()
        self.assertEqual(plain["content"], drafted["content"])
        self.assertEqual(plain["asked"], 0)
        self.assertGreater(drafted["asked"], 0)  # though it does not pay: it is as large as what it guesses for
        self.assertGreater(drafted["memory"], plain["memory"] + os.path.getsize(real.MODEL) // 2)
        self.write(text % (real.MODEL, real.MODEL, "draft: auto"))
        p = weft("serve", "--config", self.path, "--port", "0")
        self.assertEqual(p.returncode, 2)
        self.assertIn("models.second: draft: auto is for the command's own model", p.stderr)
        other = os.path.join(os.path.dirname(self.path), "other.gguf")
        self.assertEqual(weft("bench", "--synthetic", "tiny", "--type", "q4_0", "--write", other).returncode, 0)
        self.write(text % (real.MODEL, real.MODEL, f"draft: {other}"))
        server = self.serve("--port", "0", "--threads", "2")
        answer = server.post("/completion", {"model": "second", **body})
        self.assertNotEqual(answer.status, 200)
        self.assertIn("its vocabulary has 512 tokens", answer.json["error"]["message"])
        self.assertEqual(server.post("/completion", {"model": "first", **body}).status, 200)

    def test_it_is_read_again(self):
        self.write(example())
        server = self.serve("--port", "0", "--threads", "2")
        self.write(example().replace("  captain:", "  skipper:").replace("[storyteller, captain]", "[storyteller, skipper]"))
        server.process.send_signal(signal.SIGHUP)
        def names():
            return [m["id"] for m in server.get("/v1/models", headers=ANNA).json["data"]]
        self.assertTrue(wait_until(lambda: names() == ["storyteller", "skipper"]))
        self.write(example().replace("port: 8080", "prot: 8080"))
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: "did you mean 'port'?" in "".join(server.err)))
        self.assertEqual(names(), ["storyteller", "skipper"])

    def test_all_that_is_wrong_is_said(self):
        self.write("server:\n  prot: 1\n  port: 70000\n  slots: many\n  kv-type: f9\n  isolate-tenants: yes\n  alias: {a: 1}\n  host: [a, b]\n"
                   "  config: x\n  tls-cert: /nonexistent/cert\nmodels:\n  a: {path: /nonexistent.gguf, options: {port: 1, ctx: 0}}\nkeys: [{name: x}]\n")
        p = weft("serve", "--check", "--config", self.path)
        self.assertEqual((p.returncode, p.stdout), (2, ""), p)
        self.assertEqual([re.sub(r"^\S+weft\.yaml:", "", line) for line in p.stderr.splitlines()], [
            "2:3: server: there is no 'prot'; did you mean 'port'?; 'weft serve --help' lists all",
            "3:3: server: port 70000: must be from -1 to 65535",
            "4:3: server: slots many: not a whole number",
            "5:3: server: kv-type f9: keys and values as 'f9'; f16, f32, bf16, f8, q8 and q4 are possible, and two of them as k=q8,v=q4, with layers in f16 at "
            "both ends as q4,edges=2",
            "6:3: server: isolate-tenants: must be true or false",
            "7:10: server.alias: must be a value, not a map",
            "8:3: server: host: must be one value, not a list",
            "9:3: server: 'config' is for the command line alone",
            "10:3: tls-cert: /nonexistent/cert cannot be read",
            "10:3: server: 'tls-cert' wants 'tls-key' beside it",
            "12:3: models.a: /nonexistent.gguf: No such file or directory",
            "12:42: models.a.options: 'port' is none of a model's own; it stands under server",
            f"12:51: models.a.options: ctx 0: must be from 1 to {self.most('ctx')}",
            "13:8: keys[0]: 'hash' is missing",
        ])
        p = weft("serve", "--config", self.path)
        self.assertEqual((p.returncode, p.stdout, len(p.stderr.splitlines())), (2, "", 11), p)  # files are the start's to find

    def checked(self, text, *options):
        """What --check says of it, each fault without the file's name."""
        self.write(text)
        p = weft("serve", "--check", "--config", self.path, *options)
        self.assertEqual((p.returncode, bool(p.stderr)), (2 if p.stderr else 0, p.returncode == 2), p)
        return [re.sub(r"^\S+weft\.yaml:", "", line) for line in p.stderr.splitlines()]

    def test_what_the_server_would_refuse_is_found_where_it_stands(self):
        folder = os.path.dirname(self.path)
        for setting, fault in (
            ("otlp: foo", "otlp foo: must be http://HOST[:PORT][/PATH] or https://"),
            ("proxy: [10.0.0.1, banana]", "proxy banana: must be an address in digits, like 10.0.0.2 or fd00::2"),
            ("memory: lots", "memory lots: must be bytes, as 12G, 1.5G, 500M or 64K"),
            ("rope-scaling: foo", "rope-scaling foo: must be none, linear or yarn"),
            ("model: [zz]", "model zz: must be NAME=PATH"),
            ("model: [z=/nope.gguf]", "model: /nope.gguf: No such file or directory"),
            ("model: [z=models/alderbrook.gguf, z=models/alderbrook.gguf]", "--model z: the name is given twice"),
            ("models: [/nope]", "models: /nope is no folder that can be read"),
            ("pin: [nosuch]", "pin: no model of the name 'nosuch' is served"),
            ("adapter: [a=/nope.gguf]", "adapter: /nope.gguf cannot be read"),
            ("adapter: [a]", "adapter a: must be NAME=PATH or NAME=PATH:SCALE"),
            ("provider: /nope.so", "/nope.so"),
            ("draft: /nope.gguf", "draft: /nope.gguf: No such file or directory"),
            ('api-key: [""]', "api-key: shorter than 8 characters"),
            ("admin-key: [sha256:12]", "admin-key: sha256: wants 64 hexadecimal digits"),
            ("log-file: /nope/x", "log-file: /nope/x cannot be written"),
            ("metrics-file: /nope/x", "metrics-file: /nope/x cannot be written"),
            ("unix: /nope/x.sock", "unix: /nope/x.sock cannot be written"),
            ("store: /proc/x", "store: /proc/x cannot be written"),
        ):
            with self.subTest(setting):
                told = self.checked(f"server:\n  slots: 2\n  {setting}\nmodels: {{a: models/alderbrook.gguf}}\n")
                self.assertEqual((len(told), told[0][:5], fault in told[0]), (1, "3:3: ", True), told)
        for settings in ("otlp: http://localhost:4318", "proxy: [10.0.0.1, 'fd00::2']", "memory: 1.5G", "memory: 8g", "memory: 12GB", "rope-scaling: yarn",
                         "{model: [b=models/alderbrook.gguf], pin: [b]}", "draft: auto",
                         "adapter: ['x=models/pirate.gguf:0.5']", "api-key: [12345678]", "log-file: '-'", f"log-file: {folder}/new", f"store: {folder}/new",
                         f"store: {folder}", f"unix: {folder}/s", "models: [models]"):
            with self.subTest(settings):
                text = settings if settings[0] == "{" else "{" + settings + "}"
                self.assertEqual(self.checked(f"server: {text}\nmodels: {{a: models/alderbrook.gguf}}\n"), [])
        self.assertEqual(os.listdir(folder), ["weft.yaml"])  # what was tried is gone
        self.assertEqual(self.checked("server: {pin: [b]}\n", "--model", "b=models/alderbrook.gguf"), [])  # the line's count

    def test_what_only_a_start_would_find(self):
        """With outlines of the models, and a server that answers nobody; the start says the same. A further model is looked at, too."""
        folder = os.path.dirname(self.path)
        def write(name, text):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
            return os.path.join(folder, name)
        garbage, keys, template = write("garbage", "no such thing"), write("keys", "short\n"), write("template", "{% for m in messages %}{{ m")
        first = "models: {a: models/alderbrook.gguf}\n"
        for text, words in (
            ("server: {ctx: 100000}\n" + first, "was trained for 512"),
            (f"server: {{tls-cert: {garbage}, tls-key: {garbage}}}\n" + first, "TLS did not start"),
            (f"server: {{api-key-file: {keys}}}\n" + first, "line 1: API key: shorter than 8"),
            ("server: {host: no.such.host.invalid}\n" + first, "no.such.host.invalid"),
            ("server: {memory: 20M}\n" + first, "of --memory"),
            (f"server: {{store: {folder}, store-mb: 10, swap-mb: 20}}\n" + first, "a quarter of the store's"),
            ("server: {adapter: ['a=models/pirate.gguf']}\n" + first, "a name of the model itself"),
            ("server: {adapter: ['a/b=models/pirate.gguf']}\n" + first, "is no name for an adapter"),
            ("server: {adapter: ['x=models/alderbrook.gguf']}\n" + first, "it is no adapter"),
            ("server: {model: [b=models/alderbrook.gguf], alias: [a, b]}\n" + first, "two models have the name 'b'"),
            (f"server: {{chat-template: {template}}}\n" + first, "chat template: line 1"),
            (first + f"presets: {{p: {{chat-template: {template}}}}}\n", "presets.p: "),
            (first + "presets: {p: {sampling: {logit_bias: {'99999999': 1}}}}\n", "presets.p: 'logit_bias'"),
            (f"models: {{a: {garbage}}}\n", "is not a GGUF file"),
            ("models: {a: models/alderbrook.gguf, b: {path: models/alderbrook.gguf, options: {rope-scaling: none, rope-scale: 4}}}\n", "models.b: its rope"),
            ("", "an argument is missing"),
        ):
            with self.subTest(words):
                told = self.checked(text)
                self.assertIn(words, "".join(told))
                p = weft("serve", "--config", self.path, "--port", "0")
                self.assertNotEqual(p.returncode, 0)
                self.assertEqual(p.stderr.splitlines()[-1], told[-1])
        b = "{path: models/alderbrook.gguf, options: {chat-template: TEMPLATE}}".replace("TEMPLATE", template)
        for further, words in ((garbage, "the model 'b': "), (b, "the model 'b': chat template"),
                               (f"{{path: models/alderbrook.gguf, adapters: {{x: {garbage}}}}}", "the model 'b': ")):
            self.assertIn(words, self.checked(f"models: {{a: models/alderbrook.gguf, b: {further}}}\n")[-1])
        self.assertEqual(sorted(os.listdir(folder)), ["garbage", "keys", "template", "weft.yaml"])

    def test_what_is_learned_is_left_as_it_is(self):
        """Nothing of --learn DIR is made, and of a store nothing changes; what is wrong with DIR is what the start says of it, or where it stands."""
        folder = os.path.dirname(self.path)
        at = lambda name: os.path.join(folder, name)
        model = "models: {a: models/alderbrook.gguf}\n"
        with open(at("file"), "w") as f:
            f.write("x")
        os.mkdir(at("others"))
        open(at("others/notes.txt"), "w").close()
        os.symlink(at("nowhere"), at("link"))
        def files():
            found = {}
            for where, folders, names in os.walk(folder):
                found.update({os.path.join(where, name): None for name in folders})
                for name in names:
                    if os.path.exists(os.path.join(where, name)) and name != "weft.yaml":
                        with open(os.path.join(where, name), "rb") as f:
                            found[os.path.join(where, name)] = f.read()
            return found
        before = files()
        for name, words in (("no/x", "No such file or directory"), ("file", "Not a directory"), ("file/x", "Not a directory"),
                            ("others", "has other files (notes.txt)"), ("link", "No such file or directory")):
            with self.subTest(name):
                told = self.checked(f"server:\n  learn: {at(name)}\n{model}")
                self.assertEqual((len(told), told[0][:12], words in told[0]), (1, "2:3: learn: ", True), told)
                p = weft("serve", "models/alderbrook.gguf", "--check", "--learn", at(name))
                self.assertEqual((p.returncode, p.stdout), (2, ""))
                self.assertEqual(told[0][12:], p.stderr.strip().replace("weft serve: ", "", 1))
                p = weft("serve", "models/alderbrook.gguf", "--port", "0", "--learn", at(name))
                self.assertEqual((p.returncode, words in p.stderr), (1, True), p.stderr)
        self.assertEqual(files(), before)
        more = ("--learn-share", "0.2", "--memories", "--memory-embed", "--learn-consolidate", "03:00")
        for name in ("new", "others/new/"):
            self.assertEqual(self.checked(f"server: {{learn: {at(name)}}}\n{model}"), [])
            self.assertEqual(weft("serve", "models/alderbrook.gguf", "--check", "--learn", at(name), *more).stdout, "nothing is wrong with this line\n")
        self.assertEqual(files(), before)
        self.write(model)
        real.checked_stop(self.serve("--port", "0", "--threads", "2", "--learn", at("new")))
        before = files()
        self.assertIn(at("new/learn.db"), before)
        self.assertEqual(self.checked(f"server: {{learn: {at('new')}}}\n{model}"), [])
        self.assertEqual(files(), before)
        with open(at("new/log/checkpoints"), "a") as f:
            f.write("weft-log/x\n1\nAAAA\n\n\N{EM DASH} weft-log/x AAAA\n")
        self.assertIn("the witness log", "".join(self.checked(f"server: {{learn: {at('new')}}}\n{model}")))
        p = weft("serve", "models/alderbrook.gguf", "--check", "--learn", at("new"), "--memories", "--memory-embed", "--memory", "1G")
        self.assertEqual((p.returncode, "--memory-embed is for one model" in p.stderr), (2, True), p.stderr)

    def test_a_line_is_looked_at_without_a_file(self):
        p = weft("serve", "models/alderbrook.gguf", "--check")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "nothing is wrong with this line\n", ""))
        p = weft("serve", "models/alderbrook.gguf", "--check", "--ctx", "100000")
        self.assertEqual((p.returncode, "was trained for 512" in p.stderr), (2, True), p)

    def test_what_does_nothing_alone_is_refused(self):
        flags = ("memories", "memory-embed", "route-embed")
        for setting, wanted in (("metrics-every: 5", "metrics-file"), ("store-mb: 5", "store"), ("swap-mb: 5", "store"), ("learn-days: 5", "learn"),
                                ("learn-mb: 5", "learn"), ("learn-share: 0.5", "learn"), ("feedback-per-hour: 5", "learn"), ("log-sync: batch", "learn"),
                                ("memories: true", "learn"), ("memory-embed: true", "memories"), ("route-by: beta", "route"), ("route-cost: 0.5", "route"),
                                ("route-embed: true", "route"), ("adapter-mb: 5", "adapter-dir"), ("adapter-type: bf16", "adapter-dir")):
            name = setting.split(":")[0]
            told = self.checked(f"server: {{{setting}}}\nmodels: {{a: models/alderbrook.gguf}}\n")
            self.assertEqual(told, [f"1:10: server: '{name}' wants '{wanted}' beside it"])
            p = weft("serve", "no-model.gguf", *("--" + setting).split(": ")[: 1 if name in flags else 2])  # which is not looked for
            self.assertEqual((p.returncode, p.stderr), (2, f"weft serve: --{name} does nothing without --{wanted}; give that, too, or neither\n"))
        self.assertEqual(weft("serve", "no-model.gguf", "--swap", "always").returncode, 2)
        for line, words in ((("--route-cost", "5"), "must be at least 0 and at most 1"), (("--models", ".", "--draft", "x"), "--draft is about MODEL"),
                            (("--models", ".", "--spec", "draft"), "--draft")):
            p = weft("serve", *line)
            self.assertEqual((p.returncode, words in p.stderr), (2, True), p.stderr)
        for setting in ("memories: false", "route-embed: false", "swap: auto", "adapter-mb: 5, adapter: [x=models/pirate.gguf]"):
            self.assertEqual(self.checked(f"server: {{{setting}}}\nmodels: {{a: models/alderbrook.gguf}}\n"), [], setting)
        self.assertEqual(self.checked("server: {adapter-mb: 5}\nmodels: {a: {path: models/alderbrook.gguf, adapters: {x: models/pirate.gguf}}}\n"), [])
        given = ("--metrics-file", os.path.join(os.path.dirname(self.path), "m.csv"))
        self.assertEqual(self.checked("server: {metrics-every: 5}\nmodels: {a: models/alderbrook.gguf}\n", *given), [])

    def test_presets_want_what_is_served(self):
        models = "models:\n  a: {path: models/alderbrook.gguf, adapters: {pirate: models/pirate.gguf}}\n  b: models/alderbrook.gguf\npresets:\n"
        self.assertEqual(self.checked(models + "  x: {adapters: [pirate]}\n  y: {base: a, adapters: [pirate]}\n  z: {base: b}\n"), [])
        self.assertEqual(self.checked(models + "  x: {adapters: [nope]}\n  y: {base: b, adapters: [pirate]}\n  z: {base: c}\n"), [
            "5:3: presets.x: its model 'a' has no adapter 'nope'",
            "6:3: presets.y: its model 'b' has no adapter 'pirate'",
            "7:3: presets.z: its base 'c' is none of models",
        ])
        may_load = f"server: {{adapter-dir: {os.path.dirname(self.path)}}}\n"
        self.assertEqual(self.checked(may_load + models + "  x: {adapters: [nope]}\n"), [])
        own = "server: {model: [a=models/alderbrook.gguf]}\npresets:\n  x: {base: a}\n"
        self.assertEqual(self.checked(own + "  z: {base: c}\n"), ["4:3: presets.z: its base 'c' is not served"])
        self.assertEqual(self.checked(own + "  z: {base: c, adapters: [nope]}\n", "models/alderbrook.gguf"),
                         ["weft serve: presets.z: its base 'c' is not served; this server has 'alderbrook'"])

    def test_a_line_that_is_wrong_is_wrong_use(self):
        for args in (("--model", "foo"), ("--otlp", "foo"), ("--pin", "nosuch"), ("--proxy", "foo"), ("--memory", "lots"), ("--adapter", "a")):
            p = weft("serve", "models/alderbrook.gguf", *args)
            self.assertEqual((p.returncode, args[0] in p.stderr), (2, True), p)

    def most(self, option):
        return re.search(r"from 1 to (\d+)", weft("serve", "x", f"--{option}", "0").stderr).group(1)

    TWO = """
server: {slots: 2, ctx: 512}
models:
  a:
    path: models/alderbrook.gguf
    adapters: {pirate: models/pirate.gguf}
    options: {ctx: 256, slots: 3}
  b:
    path: models/alderbrook.gguf
    adapters: {poem: {path: models/poem.gguf, scale: 0.8}}
    options: {ctx: 128, slots: 1, chat-template: TEMPLATE, kv-type: f32}
  c: models/alderbrook.gguf
  d: {path: models/alderbrook.gguf, options: {idle-unload: 1}}
"""

    def test_each_model_has_its_own_settings(self):
        template = os.path.join(os.path.dirname(self.path), "b.jinja")
        with open(template, "w") as f:
            f.write("{% for m in messages %}<<{{ m.content }}>>{% endfor %}")
        self.write(self.TWO.replace("TEMPLATE", template))
        server = self.serve("--port", "0", "--threads", "2")

        def complete(n=32, **more):
            return server.post("/completion", {"prompt": "Once upon a time", "n_predict": n, "temperature": 0, **more})

        def told(model):
            props = server.get(f"/props?model={model}").json
            return props["default_generation_settings"]["n_ctx"], props["total_slots"]
        plain = complete(model="a").json["content"]
        poem = complete(model="poem")  # b is loaded for the adapter that the file gives it
        self.assertEqual((poem.status, [m["id"] for m in server.get("/v1/models").json["data"] if m["id"] in "abcd"]), (200, ["a", "b", "c", "d"]))
        self.assertEqual(complete(model="b").json["content"], complete(model="c").json["content"])
        self.assertEqual([told(m) for m in "abc"], [(256, 3), (128, 1), (512, 2)])
        adapters = [[(a["name"], a["scale"]) for a in server.get(f"/lora-adapters?model={m}").json] for m in "abc"]
        self.assertEqual([[name for name, _ in of] for of in adapters], [["pirate"], ["poem"], []])
        for model, status in (("a:pirate", 200), ("b:poem", 200), ("b:pirate", 404), ("c:poem", 404), ("pirate", 200)):
            self.assertEqual(complete(n=1, model=model).status, status, model)
        with_poem = complete(model="b", lora=[{"id": 0, "scale": 0.8}]).json["content"]
        self.assertEqual(poem.json["content"], with_poem)
        self.assertNotEqual(with_poem, plain)
        long = {"prompt": "mill " * 200, "n_predict": 1}
        self.assertEqual([server.post("/completion", {"model": m, **long}).status for m in "abc"], [200, 400, 200])
        prompts = [server.post("/apply-template", {"model": m, "messages": user("x")}).json["prompt"] for m in "bc"]
        self.assertEqual((prompts[0], "<<" in prompts[1]), ("<<x>>", False))
        self.assertEqual(complete(n=1, model="d").status, 200)
        states = lambda: {m["id"]: m["status"]["value"] for m in server.get("/v1/models").json["data"] if m["id"] in "abcd"}  # noqa: E731
        self.assertTrue(wait_until(lambda: states() == {"a": "loaded", "b": "loaded", "c": "loaded", "d": "unloaded"}))
        server.post("/models/unload", {"model": "b"})
        self.assertEqual(complete(model="poem").json["content"], with_poem)  # it comes again with its adapter

    def test_models_count_from_the_next_start(self):
        text = self.TWO.replace(", chat-template: TEMPLATE", "")
        self.write(text)
        server = self.serve("--port", "0", "--threads", "2")
        for n, (old, new) in enumerate((("scale: 0.8", "scale: 0.7"), ("ctx: 128", "ctx: 64"), ("poem.gguf", "pirate.gguf")), 1):
            text = text.replace(old, new)
            self.write(text)
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "".join(server.err).count("'models' of the settings has changed") == n), (old, server.err))  # noqa: B023
        self.assertEqual(server.post("/completion", {"model": "b", "prompt": "x", "n_predict": 1}).status, 200)
        self.assertEqual(server.get("/props?model=b").json["default_generation_settings"]["n_ctx"], 128)

    def test_what_is_wrong_with_one_model_is_said_there(self):
        wrong = self.TWO.replace("poem:", "c:").replace("slots: 1", "slots: 0").replace("poem.gguf", "poet.gguf").replace("TEMPLATE", "/nonexistent")
        self.write(wrong)
        p = weft("serve", "--check", "--config", self.path)
        self.assertEqual([re.sub(r"^\S+weft\.yaml:", "", line) for line in p.stderr.splitlines()], [
            "10:16: models.b.adapters: a model has the name 'c', too",
            "10:16: b: models/poet.gguf cannot be read",
            "11:25: models.b.options: slots 0: must be from 1 to " + self.most("slots"),
            "11:35: chat-template: /nonexistent cannot be read",
        ], p)
        self.write(self.TWO.replace("TEMPLATE", "/nonexistent"))
        p = weft("serve", "--config", self.path)
        self.assertEqual((p.returncode, "/nonexistent" in p.stderr), (1, True), p)
        self.write(self.TWO.replace(", chat-template: TEMPLATE", "").replace("models/poem.gguf", "models/alderbrook.gguf"))
        server = self.serve("--port", "0", "--threads", "2")
        answer = server.post("/completion", {"model": "b", "prompt": "x", "n_predict": 1})
        self.assertEqual((answer.status >= 500, "adapter 'poem'" in answer.json["error"]["message"]), (True, True), answer.json)
        self.assertEqual(server.post("/completion", {"model": "c", "prompt": "x", "n_predict": 1}).status, 200)

    def test_what_is_no_file(self):
        for args, status in ((("--check", "--config", self.path), 2), (("--config", self.path), 1), (("--config", ROOT), 1)):
            p = weft("serve", *args)
            self.assertEqual((p.returncode, p.stdout), (status, ""), p)
        self.write("")
        p = weft("serve", "--config", self.path)
        self.assertEqual((p.returncode, "has none under 'models'" in p.stderr), (2, True), p)
        p = subprocess.run([*WEFT, "serve", "--check"], capture_output=True, text=True, timeout=PATIENCE, cwd=os.path.dirname(self.path))
        self.assertEqual((p.returncode, "an argument is missing" in p.stderr), (2, True), p)
        self.write("models: {a: %s}\n" % os.path.join(ROOT, "models", "alderbrook.gguf"))
        p = subprocess.run([*WEFT, "serve", "--check"], capture_output=True, text=True, timeout=PATIENCE, cwd=os.path.dirname(self.path))
        self.assertEqual((p.returncode, p.stdout[:10]), (0, "weft.yaml:"), p)

    def test_keys(self):
        p = weft("key", "new", "--name", "anna")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        key, _, entry = p.stdout.partition("\n\n")
        self.assertRegex(key, "^weft-[0-9a-f]{48}$")
        hashed = "sha256:" + hashlib.sha256(key.encode()).hexdigest()
        self.assertEqual(entry, f"  - name: anna\n    hash: {hashed}\n    role: user\n")
        self.assertNotEqual(weft("key", "new").stdout.split()[0], key)
        for given in (key, key + "\n", key + "\r\nmore\n"):
            self.assertEqual(weft("key", "hash", input=given).stdout, hashed + "\n")
        self.write("keys:\n" + entry)
        self.assertEqual(weft("serve", "models/alderbrook.gguf", "--check", "--config", self.path).returncode, 0)
        for args, given in ((("new", "--name", "a b"), ""), (("new", "--role", "root"), ""), (("hash",), "short\n"), (("hash",), "x" * 2000), (("hash",), "")):
            self.assertEqual(weft("key", *args, input=given).returncode, 2, args)


if __name__ == "__main__":
    unittest.main(verbosity=1)
