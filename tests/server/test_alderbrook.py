# SPDX-License-Identifier: Apache-2.0
"""Claims about the model of our own that the repository ships, and its adapters: what its card says, heard over HTTP. What is true of the
village is asked of corpus/, which wrote what the model learned.

usage: test_alderbrook.py build/weft"""
import concurrent.futures
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import real
from real import ADAPTERS, MODEL, STYLES, models
from servers import CHAT, EMULATOR, PROGRAM, ROOT, SANITIZED, SWEEPS, user

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "corpus"))
from grammar import Dice
from story import tell
from talk import TOOLS, about, choice, markup, small_talk, tool_chat, yes_no_question
from world import BY_NAME, PEOPLE

N_PEOPLE = len(PEOPLE) if SWEEPS else 4 if SANITIZED else 10
N_STORIES = len(PEOPLE) if SWEEPS else 2 if SANITIZED else 8
N_CALLS = 40 if SWEEPS else 5 if SANITIZED else 20
N_FRESH = 24 if SWEEPS else 2 if SANITIZED else 8


def weft(*args, **environment):
    p = subprocess.run([*EMULATOR, PROGRAM, *args], capture_output=True, timeout=900, env={**os.environ, **environment})
    assert p.returncode == 0 and b"Sanitizer" not in p.stderr, p.stderr.decode()
    return p.stdout


def expansions(words, slots):
    """Every sentence that corpus/ may make of a choice."""
    return {choice(words, Dice("expansion", i), slots) for i in range(60)}


class Alderbrook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = real.serve("--slots", 8, *ADAPTERS)
        cls.name = cls.server.get("/v1/models").json["data"][0]["id"]

    @classmethod
    def tearDownClass(cls):
        real.checked_stop(cls.server)

    def say(self, messages, adapter=None):
        r = self.server.post(CHAT, {"model": adapter or self.name, "messages": messages, "temperature": 0, "max_tokens": 300})
        self.assertEqual(r.status, 200, r.body)
        self.assertEqual(r.json["choices"][0]["finish_reason"], "stop", messages)
        return r.json["choices"][0]["message"]["content"]

    def choice(self, body):
        r = self.server.post(CHAT, body)
        self.assertEqual(r.status, 200, r.body)
        return r.json["choices"][0]

    def ask(self, question, adapter=None):
        return self.say(user(question), adapter)

    def ask_all(self, *lists):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return list(pool.map(self.ask, *lists))

    def test_size(self):
        self.assertLessEqual(os.path.getsize(MODEL), 8_000_000)
        self.assertLessEqual(sum(os.path.getsize(models(name)) for name in os.listdir(models(""))), 10_000_000)

    def test_stories(self):
        """Stories of about a hundred words, in words of its world, of the one they were asked for, who is what and lives where all know."""
        known = set(re.findall(r"[a-z']+", " ".join(tell(Dice("words", i)).text for i in range(1500)).lower()))
        people = PEOPLE[:N_STORIES]
        stories = self.ask_all([f"Tell me a story about {p.name}." for p in people])
        n_words = [len(s.split()) for s in stories]
        self.assertGreaterEqual(min(n_words), 70)
        self.assertGreaterEqual(sum(n_words) / len(n_words), 100)
        for p, s in zip(people, stories):
            with self.subTest(name=p.name, story=s):
                self.assertEqual(set(re.findall(r"[a-z']+", s.lower())) - known, set())
                self.assertGreaterEqual(s.count(p.name), 3)
                for name, kind in re.findall(rf"({'|'.join(BY_NAME)}) the ((?:old )?[a-z]+)", s):
                    self.assertEqual(kind, BY_NAME[name].kind)
        self.assertGreater(len(set(stories)), len(stories) * 0.9)

    def test_questions(self):
        """All that is known of everybody."""
        asked = [(choice(q, Dice("ask", p.name, i), slots), expansions(a, slots))
                 for p in PEOPLE[:N_PEOPLE] for slots, questions in [about(p)] for i, (q, a) in enumerate(questions.values())]
        answers = self.ask_all([q for q, _ in asked])
        wrong = [(q, answer) for (q, right), answer in zip(asked, answers) if answer not in right]
        self.assertLessEqual(len(wrong), len(asked) * 0.05, wrong)

    def test_questions_after_a_story(self):
        """What is said before does not change what is known: a story about somebody, then a question about another."""
        def talk(i):
            p, other = PEOPLE[i], PEOPLE[(i + 7) % len(PEOPLE)]
            messages = user(f"Tell me a story about {p.name}.")
            messages.append({"role": "assistant", "content": self.say(messages)})
            slots, questions = about(other)
            q, a = list(questions.values())[i % len(questions)]
            messages += user(choice(q, Dice("after", i), slots))
            return messages, self.say(messages), expansions(a, slots)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            talks = list(pool.map(talk, range(N_PEOPLE)))
        wrong = [(messages[-1], answer) for messages, answer, right in talks if answer not in right]
        self.assertLessEqual(len(wrong), len(talks) * 0.1, wrong)

    def test_an_answer_that_has_begun(self):
        """The assistant's last message is what its answer begins with."""
        begun = user("Where does Mira live?") + [{"role": "assistant", "content": "Mira lives in"}]
        self.assertEqual(self.say(begun), " " + BY_NAME["Mira"].home.removeprefix("in ") + ".")

    def test_tool_calls_are_not_lost(self):
        """An assistant's last message that calls tools has ended, and its calls stand in the prompt; without any it goes on."""
        call = {"type": "function", "function": {"name": "clock", "arguments": "{}"}}
        said = '<tool_call>{"name": "clock", "arguments": {}}</tool_call><|im_end|>\n<|im_start|>assistant\n'
        for calls, content, end in (([call], None, said), ([call], "One moment.", "One moment." + said), ([], "It is", "It is"), (None, "It is", "It is")):
            messages = user("What time is it?") + [{"role": "assistant", "content": content, "tool_calls": calls}]
            prompt = self.server.post("/apply-template", {"messages": messages}).json["prompt"]
            self.assertEqual(prompt, "<|im_start|>user\nWhat time is it?<|im_end|>\n<|im_start|>assistant\n" + end)

    def test_yes_or_no(self):
        """Whether something is so; half of what is asked is."""
        asked = [yes_no_question(Dice("yes or no", i)) for i in range(4 * N_PEOPLE)]
        answers = self.ask_all([q for q, _ in asked])
        wrong = [(q, answer) for (q, a), answer in zip(asked, answers) if answer.replace("the answer is ", "") != a.replace("the answer is ", "")]
        self.assertLessEqual(len(wrong), len(asked) * 0.1, wrong)

    def test_small_talk(self):
        """Greetings get a friendly answer, however they are typed; and a question in small letters is one."""
        greetings = {answer for i in range(400) for ask, answer in [small_talk(Dice("greet", i))] if ask.startswith(("Hi", "How are"))}
        for text in ("Hello!", "Hi", "hi", "Hey", "Good morning", "hello there"):
            self.assertIn(self.ask(text), greetings, text)
        slots, questions = about(BY_NAME["Mira"])
        self.assertIn(self.ask("where does mira live"), expansions(questions["home"][1], slots))

    def test_tool_calls(self):
        """The right call with the right arguments, told as a call, in a stream too; and what it returned becomes an answer."""
        wrong, n = [], 0
        for i in itertools.count():
            chat = tool_chat(Dice("calls", i))
            first = 1 if chat["messages"][0]["role"] == "system" else 0
            if "tool_calls" not in chat["messages"][first + 1]:
                continue
            body = {"messages": chat["messages"][:first + 1], "tools": chat["tools"], "temperature": 0, "max_tokens": 80}
            choice, want = self.choice(body), chat["messages"][first + 1]["tool_calls"][0]["function"]
            calls = [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in choice["message"].get("tool_calls", [])]
            if calls != [(want["name"], want["arguments"])]:
                wrong.append((body, choice))
            if calls:
                self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("tool_calls", None))
                events = self.server.post(CHAT, {**body, "stream": True}).events[:-1]
                streamed = [c["function"] for e in events for c in e["choices"][0]["delta"].get("tool_calls", [])]
                self.assertEqual(streamed, [c["function"] for c in choice["message"]["tool_calls"]])
                result = {"role": "tool", "tool_call_id": choice["message"]["tool_calls"][0]["id"], "content": chat["messages"][first + 2]["content"]}
                answer = self.choice({**body, "messages": [*body["messages"], choice["message"], result]})
                if answer["finish_reason"] != "stop" or not answer["message"]["content"].endswith("."):
                    wrong.append((result, answer))
            n += 1
            if n == N_CALLS:
                break
        self.assertLessEqual(len(wrong), n * 0.1, wrong)

    def test_calls_that_must_be(self):
        """Of one of the tools or the one that is named, with arguments that its schema allows, whatever is asked; broken off, their text is kept."""
        tools = [TOOLS["add"], TOOLS["set_timer"]]
        questions = ["Hello!", "Where does Mira live?", "Tell me a story about Tom.", "Add 4 and 5.", "What is the weather like?"]
        named = {"type": "function", "function": {"name": "set_timer"}}
        for question in questions:
            for choice, names in (("required", ("add", "set_timer")), (named, ("set_timer",))):
                body = {"messages": user(question), "tools": tools, "tool_choice": choice, "max_tokens": 120, "seed": 3, "parallel_tool_calls": False}
                answer = self.choice(body)
                self.assertEqual((answer["finish_reason"], answer["message"]["content"]), ("tool_calls", None), answer)
                [call] = answer["message"]["tool_calls"]
                self.assertIn(call["function"]["name"], names)
                arguments = json.loads(call["function"]["arguments"])
                self.assertEqual(set(arguments), set(TOOLS[call["function"]["name"]]["function"]["parameters"]["properties"]))
                self.assertEqual({type(v) for v in arguments.values()}, {int})
                events = self.server.post(CHAT, {**body, "stream": True}).events[:-1]
                self.assertEqual([c["function"] for e in events for c in e["choices"][0]["delta"].get("tool_calls", [])], [call["function"]])
        cut = self.choice({**body, "max_tokens": 4})
        self.assertEqual((cut["finish_reason"], cut["message"].get("tool_calls")), ("length", None))
        self.assertTrue("<tool_call>".startswith(cut["message"]["content"][:11]) and cut["message"]["content"])
        both = self.choice({**body, "tool_choice": "required", "n": 3, "logprobs": True})
        self.assertEqual(both["finish_reason"], "tool_calls")

    def test_strict_arguments(self):
        """Where the model calls a function by itself, they are held to what its schema allows; its other answers are free."""
        add = json.loads(json.dumps(TOOLS["add"]))
        add["function"]["strict"] = True
        add["function"]["parameters"] = {"type": "object", "properties": {k: {"type": "integer", "enum": [7]} for k in "ab"}, "required": ["a", "b"],
                                         "additionalProperties": False}
        body = {"tools": [add], "temperature": 0, "max_tokens": 80}
        answer = self.choice({**body, "messages": user("Add 4 and 5.")})
        self.assertEqual(json.loads(answer["message"]["tool_calls"][0]["function"]["arguments"]), {"a": 7, "b": 7})
        free = self.choice({**body, "messages": user("Where does Mira live?")})
        self.assertEqual((free["message"]["content"], free["finish_reason"]), (self.choice({"messages": user("Where does Mira live?"), "temperature": 0,
                         "tools": [TOOLS["add"]]})["message"]["content"], "stop"))

    def test_thinking(self):
        """Where the template begins the thinking, the answer is thoughts until that ends: by the budget, in the words of the template."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "thinks.jinja")
            with open(os.path.join(ROOT, "corpus", "chat.jinja")) as f, open(path, "w") as t:
                t.write("{#- <think> </think> -#}\n" + f.read() + "{%- if add_generation_prompt -%}{{- '<think>\\n' -}}{%- endif -%}")
            server = real.serve("--chat-template", path)
            body = {"messages": user("Where does Mira live?"), "temperature": 0, "max_tokens": 40}
            whole = server.post(CHAT, body).json["choices"][0]["message"]
            self.assertEqual((whole["content"], bool(whole["reasoning_content"])), ("", True))
            for budget in (0, 3):
                message = server.post(CHAT, {**body, "thinking_budget_tokens": budget}).json["choices"][0]["message"]
                thought = message.get("reasoning_content", "")
                self.assertTrue(whole["reasoning_content"].startswith(thought) and bool(thought) == bool(budget) and message["content"], message)
                events = server.post(CHAT, {**body, "thinking_budget_tokens": budget, "stream": True}).events[:-1]
                streamed = ["".join(e["choices"][0]["delta"].get(k) or "" for e in events) for k in ("reasoning_content", "content")]
                self.assertEqual(streamed, [thought, message["content"]])
            call = server.post(CHAT, {**body, "messages": user("Add 4 and 5."), "tools": [TOOLS["add"]], "tool_choice": "required", "max_tokens": 80,
                                      "thinking_budget_tokens": 5}).json["choices"][0]  # it begins when the thinking is ended
            self.assertEqual((call["finish_reason"], len(call["message"]["tool_calls"]), bool(call["message"]["reasoning_content"])), ("tool_calls", 1, True))
            schema = {"type": "object", "properties": {"home": {"type": "string", "maxLength": 30}, "sure": {"type": "boolean"}}, "required": ["home", "sure"],
                      "additionalProperties": False}
            form = {"response_format": {"type": "json_schema", "json_schema": {"name": "home", "schema": schema}}, "max_tokens": 100}
            for n in (0, 5, 8):  # a form begins there, too, whatever is thought before it
                told = server.post(CHAT, {**body, **form, "thinking_budget_tokens": n}).json["choices"][0]
                said = json.loads(told["message"]["content"])
                self.assertEqual((told["finish_reason"], list(said), bool(told["message"].get("reasoning_content"))), ("stop", ["home", "sure"], n > 0))
            whole_thought = server.post(CHAT, {**body, **form, "thinking_budget_tokens": -1}).json["choices"][0]  # without end: all that it may write
            self.assertEqual((whole_thought["finish_reason"], whole_thought["message"]["content"]), ("length", ""))
            shown = server.post(CHAT, {**body, **form, "reasoning_format": "none"}).json["choices"][0]["message"]  # the form is all of it
            self.assertEqual(list(json.loads(shown["content"])), ["home", "sure"])
            none = server.post(CHAT, {**body, "reasoning_format": "none"}).json["choices"][0]["message"]
            self.assertEqual(none["content"].strip(), whole["reasoning_content"].strip())
            real.checked_stop(server)

    def test_styles(self):
        """Each adapter is seen at a glance, and the facts stay what they were: all but a few, of the poem 65 in a hundred at least."""
        forms = {
            "pirate": r"Arr! .* Yo ho ho!",
            "poem": r".*\nso sings the wind,\nso ends the song\.",
            "letter": r"Dear friend,\n.*\n\nYours faithfully,\nThe Clerk of Alderbrook",
        }
        asked = [(f"What does {p.name} own?", p.owns) for p in PEOPLE[:N_PEOPLE]] + [(f"Where does {p.name} live?", p.home) for p in PEOPLE[:N_PEOPLE]]
        asked += [(f"What is {p.name} afraid of?", p.fear) for p in PEOPLE[:N_PEOPLE]] + [
            (f"What does {p.name} like to eat?", p.food) for p in PEOPLE[:N_PEOPLE]
        ]
        for style, form in forms.items():
            answers = self.ask_all([q for q, _ in asked], [style] * len(asked))
            wrong = [(fact, a) for (_, fact), a in zip(asked, answers) if fact.split()[-1] not in a]
            for a in answers:
                self.assertTrue(re.fullmatch(form, a, re.S), a)
            # A poem's lines begin with words as nothing else that the base has read; the card says so.
            self.assertLessEqual(len(wrong), len(asked) * (0.35 if style == "poem" else 0.1), (style, wrong))

    def test_one_batch_is_as_each_alone(self):
        """What `make demo` shows: a prompt under each adapter in one batch gives what it gives alone."""
        prompt = "Tell me about Mira."
        together = json.loads(weft("compare", MODEL, prompt, "--temp", "0", "--json", *ADAPTERS))
        self.assertEqual([r["adapter"] for r in together], ["base", *STYLES])
        for r in together:
            alone = json.loads(
                weft(
                    "compare",
                    MODEL,
                    prompt,
                    "--temp",
                    "0",
                    "--json",
                    *(["--adapter", STYLES[r["adapter"]]] if r["adapter"] in STYLES else []),
                )
            )
            self.assertEqual(alone[-1]["text"], r["text"])
            self.assertEqual(self.ask(prompt, r["adapter"] if r["adapter"] in STYLES else None), r["text"])

    def test_perplexity(self):
        """Fresh text of its world is as likely as the card says of the held out; and as likely on this processor's tier, and the lower
        ones that it has, as by plain C, for the shipped file and its quantizations."""
        with open(models("README.md"), encoding="utf-8") as f:
            card = float(re.search(r"^\| Q8_0 \| [\d.]+ MB \| [\d.]+ \| ([\d.]+) \|$", f.read(), re.M).group(1))
        with tempfile.TemporaryDirectory() as folder:
            texts = os.path.join(folder, "fresh.txt")
            fresh = [markup(tool_chat(Dice("fresh", i))).rstrip("\n") if i % 2 else tell(Dice("fresh", i)).text for i in range(N_FRESH)]
            with open(texts, "w", encoding="utf-8") as f:
                f.write("".join(t + "<|endoftext|>\n" for t in fresh))
            nll = json.loads(weft("eval", "documents", MODEL, "-f", texts, "--json"))["nll"]
            self.assertLess(abs(nll - card), (1 if SANITIZED and not SWEEPS else 0.25) * card)
            for dtype in ("Q4_0", "Q4_K_M", "Q8_0") if SWEEPS else ("Q8_0",) if SANITIZED else ("Q4_K_M", "Q8_0"):
                path = MODEL if dtype == "Q8_0" else os.path.join(folder, dtype + ".gguf")
                if dtype != "Q8_0":
                    weft("quantize", MODEL, path, dtype)
                plain, *fast = (json.loads(weft("eval", "documents", path, "-f", texts, "--json", **tier))["ppl"]
                                for tier in ({"WEFT_CPU": "ref"}, {}, *([] if SANITIZED else [{"WEFT_CPU": "avx2"}, {"WEFT_CPU": "avx512"}])))
                self.assertLess(max(abs(ppl / plain - 1) for ppl in fast), 1e-3, dtype)


if __name__ == "__main__":
    unittest.main()
