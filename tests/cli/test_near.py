# SPDX-License-Identifier: Apache-2.0
"""Claims about names that are none: who misspells a command, a kind or an option is told what he may have meant, and who knows llama.cpp, Ollama or
vLLM what stands here for what they have; usage, before anything is opened. usage: test_near.py build/weft"""
import os
import re
import unittest

from common import EMULATED, SANITIZED, WHOLE, leave_out, main, repeated, weft

COMMANDS = re.findall(r"^  ([a-z-]+)  ", weft("--help").stdout.decode(), re.M)


def options_of(*command):
    return re.findall(r"--([a-z0-9-]+)", "\n".join(re.findall(r"^  (?:-\w, |    )--[a-z0-9-]+", weft(*command, "--help").stdout.decode(), re.M)))


def slips(word):
    """A letter more, one less, another one, two in each other's place; not where that is the beginning of the word, which names it."""
    middle = len(word) // 2
    yield word[:middle] + "x" + word[middle:]
    yield word[:middle] + word[middle + 1:]
    yield word[:middle] + "x" + word[middle + 1:]
    yield word[:middle - 1] + word[middle] + word[middle - 1] + word[middle + 1:]


@leave_out(EMULATED, "messages are the same for every processor")
class Near(unittest.TestCase):
    def refused(self, *args):
        p = weft(*args)
        self.assertEqual((p.returncode, p.stdout), (2, b""), (args, p.stderr))
        return p.stderr.decode()

    def test_commands(self):
        self.assertGreaterEqual(len(COMMANDS), 20)
        for word, meant in (("rnu", "run"), ("sevre", "serve"), ("quantise", "quantize"), ("tokenise", "tokenize"), ("train_tokenizer", "train-tokenizer"),
                            ("chta", "chat"), ("adaptor", "adapter"), ("device", "devices")):
            self.assertIn(f"there is no command '{word}'; did you mean 'weft {meant}'?", self.refused(word))
        for command in COMMANDS[::repeated(1, 3, 3)]:
            for word in list(slips(command))[:repeated(4, 1, 1)] if len(command) > 4 else ():
                self.assertIn(f"did you mean 'weft {command}'?", self.refused(word))
        for word in ("fly", "x", "q" * 300, "", "rumpelstiltskin"):
            self.assertNotIn("did you mean", self.refused(word))
        for command, kinds in (("adapter", ("train", "merge", "convert", "info")), ("eval", ("logits", "documents", "perplexity"))):
            for kind in kinds:
                self.assertIn(f"did you mean 'weft {command} {kind}'?", self.refused(command, kind[:2] + kind[3:]))

    def test_help_of_a_command(self):
        for command in COMMANDS[::repeated(1, 3, 3)]:
            self.assertEqual(weft("help", command).stdout, weft(command, "--help").stdout)
        self.assertEqual(weft("help", "adapter", "train").stdout, weft("adapter", "train", "--help").stdout)
        self.assertEqual(weft("help").stdout, weft("--help").stdout)
        self.assertIn("did you mean 'weft run'", self.refused("help", "rum"))

    def test_options(self):
        for command in (("run",), ("serve",), ("bench",), ("adapter", "train"), ("eval", "perplexity")):
            names = options_of(*command)
            self.assertGreater(len(names), 5)
            for i, name in list(enumerate(names))[::repeated(1, 7, 7)]:
                for word in [list(slips(name))[i % 4]] if len(name) > 5 else ():
                    if any(n.startswith(word) for n in names):
                        continue
                    said = self.refused(*command, "m", "--" + word, "1")
                    self.assertRegex(said, f"there is no option '--{word}'; did you mean --({'|'.join(names)})\\?")
        self.assertIn("did you mean --temp?", self.refused("run", "m", "--tmep", "1"))
        self.assertIn("did you mean --threads?", self.refused("run", "m", "--treads=1"))
        self.assertNotIn("did you mean", self.refused("run", "m", "--zzzzzz"))
        self.assertIn("--temp wants a value: --temp T", self.refused("run", "m", "--temp"))
        self.assertIn("--n-predict wants a value: --n-predict N", self.refused("run", "m", "-n"))
        self.assertIn("--ignore-eos takes no value", self.refused("run", "m", "--ignore-eos=1"))
        self.assertIn("there is no option -Z", self.refused("run", "m", "-Z"))
        self.assertIn("several options begin with '--top'", self.refused("run", "m", "--top", "1"))

    def test_options_of_others(self):
        """As a value is given behind them or in them, with '_' for '-', and before '-ngl' is read as '-n gl'; never where it is a value itself."""
        for option, words in (
            ("-ngl", "on the CPU"),
            ("--n-gpu-layers", "on the CPU"),
            ("--n_gpu_layers", "on the CPU"),
            ("-fa", "attention"),
            ("--flash-attn", "attention"),
            ("-m", "weft run MODEL"),
            ("-p", "PROMPT"),
            ("-hf", "weft pull"),
            ("-ctk", "--kv-type"),
            ("--ctx-size", "--ctx"),
            ("--max-model-len", "--ctx"),
            ("--max-tokens", "-n"),
            ("--temperature", "--temp"),
            ("--lora", "--adapter"),
            ("--lora-modules", "--adapter"),
            ("-np", "--slots"),
            ("--tensor-parallel-size", "--provider"),
            ("--gpu-memory-utilization", "CPU"),
            ("--served-model-name", "--alias"),
            ("--slot-save-path", "--store"),
            ("--json-schema", "--grammar"),
            ("--json-schema-file", "--schema FILE"),
            ("--reasoning-format", "--show-thinking"),
            ("--reasoning-budget", "--template-kwargs"),
            ("--tool-call-parser", "leave it out"),
            ("--enable-auto-tool-choice", "leave it out"),
            ("--mlock", "leave it out"),
            ("--no-mmap", "leave it out"),
            ("-cnv", "weft chat"),
            ("--verbose", "WEFT_LOG"),
        ):
            for args in ([option], [option, "3"], [option + "=3"])[len(option) % 3 if SANITIZED and not WHOLE else 0::repeated(1, 3, 3)]:
                said = self.refused("run", "m", "x", *args)
                self.assertIn(f"there is no {option}: ", said)
                self.assertIn(words, said)
        for command, option, name in (("bench", "--lora", "bench"), ("tokenize", "--lora-scaled", "tokenize"), ("quantize", "--ctx-size", "quantize")):
            self.assertIn(f", which 'weft {name}' does not have", self.refused(command, "m", option, "3"))
        for command, option in (("run", "--lora"), ("quantize", "-np"), ("run", "--ctx-size")):  # one that it has, or of another command
            self.assertNotIn("does not have", self.refused(command, "m", option, "3"))
        for option, words in (  # a server's answers are held to what their requests say
            ("--json-schema", "response_format or structured_outputs"),
            ("--json-schema-file", "response_format or structured_outputs"),
            ("--grammar", "response_format or structured_outputs"),
            ("--schema", "response_format or structured_outputs"),
            ("--guided_json", "response_format or structured_outputs"),
            ("--reasoning-format", "reasoning_format"),
            ("--reasoning-budget", "reasoning_budget_tokens"),
            ("--tool-call-parser", "leave it out"),
            ("--mlock", "--lock"),
            ("--no-webui", "--no-page"),
            ("-md", "--draft MODEL"),
            ("--models-dir", "--models DIR"),
            ("--models-max", "--memory BYTES"),
            ("--sleep-idle-seconds", "--idle-unload S"),
            ("--ssl-certfile", "--tls-cert"),
        ):
            said = self.refused("serve", "m", option, "3")
            self.assertIn(f"there is no {option}: ", said)
            self.assertIn(words, said)
        for args in (
            ("run", "no-such-model", "x", "--stop", "-ngl"),
            ("run", "no-such-model", "--", "-ngl"),
            ("run", "no-such-model", "x", "-n", "3", "--temp=1"),
            ("bench", "no-such-model", "-p", "8", "-n", "1"),
        ):
            p = weft(*args)
            self.assertEqual(p.returncode, 1, (args, p.stderr))  # it is not there

    def test_commands_of_others(self):
        for word, words in (
            ("ps", "weft top"),
            ("show", "weft info"),
            ("ls", "weft list"),
            ("llama-server", "weft serve"),
            ("llama-cli", "weft run"),
            ("perplexity", "weft eval perplexity"),
            ("finetune", "weft adapter train"),
            ("download", "weft pull"),
            ("version", "weft --version"),
            ("create", "weft.yaml"),
            ("login", "HF_TOKEN"),
        ):
            said = self.refused(word)
            self.assertIn(f"there is no command '{word}': ", said)
            self.assertIn(words, said)

    def test_what_is_told_is_there(self):
        """The commands and options in all those answers exist."""
        with open("cli/near.c", encoding="utf-8") as f:
            tables = f.read().split("---- other programs ----")[1].split("static int is_among")[0]
        answers = re.findall(r'"((?:[^"\\]|\\.)*)"\}', tables)
        self.assertGreater(len(answers), 40)
        known = (
            {o for c in COMMANDS for o in options_of(c)}
            | {o for k in ("train", "merge") for o in options_of("adapter", k)}
            | {o for k in ("logits", "perplexity") for o in options_of("eval", k)}
            | {"version"}
        )
        for answer in answers:
            for command in re.findall(r"weft ([a-z][a-z-]*)", answer):
                self.assertIn(command, COMMANDS, answer)
            for option in re.findall(r"--([a-z][a-z-]*)", answer):
                self.assertIn(option, known, answer)

    def test_what_is_no_model_says_what_it_is(self):
        for command in (
            ("run", "models/pirate.gguf", "x"),
            ("serve", "models/pirate.gguf", "--port", "-1"),
            ("chat", "models/pirate.gguf"),
            ("eval", "logits", "models/pirate.gguf", "--tokens", "1", "-o", os.devnull),
            ("bench", "models/pirate.gguf"),
        ):
            p = weft(*command)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn(b"models/pirate.gguf is an adapter (LoRA), which changes a model: give the model, and this as --adapter NAME=PATH of weft run,",
                          p.stderr)
            self.assertIn(b"'weft adapter merge' makes one model of both", p.stderr)
        p = weft("run", "alderbrook-that-is-not", "x")
        self.assertIn(b"(a pulled model is called OWNER/NAME; 'weft list' shows them, 'weft pull --known' short names of others)", p.stderr)


if __name__ == "__main__":
    main()
