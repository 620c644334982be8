# SPDX-License-Identifier: Apache-2.0
"""Claims about weft chat: commands, reuse of what the session holds, and text that stays text. usage: test_chat.py build/weft"""
import json
import os
import re
import tempfile
import unittest

from common import STORIES, main, needs_models, weft

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stories.jinja")  # each answer is a story, so that the model knows its way


def chat(lines, *args):
    p = weft("chat", STORIES, "--chat-template", TEMPLATE, "-n", "20", "--temp", "0", *args, stdin="\n".join(lines).encode() + b"\n")
    return p, p.stdout.decode(), p.stderr.decode()


def messages_of(path):
    """What /save wrote: one record on a line."""
    with open(path) as f:
        text = f.read()
    assert text.count("\n") == 1 and text.endswith("\n"), text
    return json.loads(text)["messages"]


def stats(err):
    return [tuple(map(int, m)) for m in re.findall(r"context (\d+) of \d+ tokens; last answer: (\d+) reused, (\d+) read", err)]


@needs_models
class Chat(unittest.TestCase):
    def test_variables_of_the_template_are_read_before_anything_is_said(self):
        for given, words in (("{bad", "--template-kwargs: line 1"), ("[1]", "--template-kwargs: must be a JSON object"), ("", "--template-kwargs: ")):
            p, out, err = chat(["/stats"], "--template-kwargs", given)
            self.assertEqual((p.returncode, out), (2, ""), err)
            self.assertIn(words, err)
            self.assertNotIn("context", err)
        p, _, err = chat(["/stats"], "--template-kwargs", '{"enable_thinking": false}')
        self.assertEqual(p.returncode, 0, err)

    def test_the_prefix_is_never_read_again(self):
        p, _, err = chat(["Hello there", "/stats", "tell me more", "/stats", "and more", "/stats"])
        self.assertEqual(p.returncode, 0, err)
        first, second, third = stats(err)
        self.assertEqual(first[1], 0)
        # All that the session held is reused, the answer included.
        self.assertEqual(second[1], first[0])
        self.assertEqual(third[1], second[0])
        self.assertEqual(second[0], second[1] + second[2] + 19)  # the last token written needs no place yet

    def test_an_answer_does_not_depend_on_reuse(self):
        # Answers that are cut: their last tokens were not evaluated when the next line comes. A long one may be spelled in other tokens.
        for n, lines in ((20, 2), (1, 3), (2, 3), (3, 3), (5, 3), (8, 3)):
            with self.subTest(n=n), tempfile.TemporaryDirectory() as d:
                path, limit = os.path.join(d, "c.json"), ("-n", str(n))
                chat([*["Hello there", "tell me more", "and then"][:lines], f"/save {path}"], *limit)
                saved = messages_of(path)
                self.assertEqual([m["role"] for m in saved], ["user", "assistant"] * lines)
                _, again, _ = chat([f"/load {path}", "/regen"], *limit)  # the whole conversation is read anew
                self.assertEqual(again.strip(), saved[-1]["content"].strip())

    def test_regen_and_reset(self):
        p, out, err = chat(["Hello there", "/regen", "/stats", "/reset", "Hello there", "/stats"])
        self.assertEqual(p.returncode, 0)
        third = len(out) // 3
        self.assertEqual(out[:third], out[third:2 * third])  # greedy: the same answer each time
        self.assertEqual(out[:third], out[2 * third:])
        self.assertGreater(third, 10)
        regenerated, fresh = stats(err)
        self.assertGreater(regenerated[1], 0)
        self.assertEqual(regenerated[2], 1)  # only the last token is read again, for its logits
        self.assertEqual(fresh[0], regenerated[0])

    def test_system_message(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "c.json")
            chat(["/system Be brief.", "hi", "/reset", "ho", f"/save {path}"])
            saved = messages_of(path)
        self.assertEqual(saved[0], {"role": "system", "content": "Be brief."})
        self.assertEqual(saved[1]["content"], "ho")

    def test_only_conversations_are_written_over(self):
        with tempfile.TemporaryDirectory() as d:
            path, model = os.path.join(d, "c.json"), os.path.join(d, "m.gguf")
            with open(model, "wb") as f:
                f.write(b"GGUF\3\0\0\0")
            _, _, err = chat(["hi", f"/save {model}", f"/save {path}", "ho", f"/save {path}"])
            self.assertIn("m.gguf is no conversation", err)
            with open(model, "rb") as f:
                self.assertEqual(f.read(), b"GGUF\3\0\0\0")
            self.assertEqual(len(messages_of(path)), 4)

    def test_bad_conversations_and_commands_are_named(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "bad.json")
            with open(path, "w") as f:
                f.write('[{"no": "role"}]')
            p, _, err = chat([f"/load {path}", "/load /nonexistent", "/fly"])
        self.assertEqual(p.returncode, 1)
        self.assertIn("not a conversation", err)
        self.assertIn("/nonexistent", err)
        self.assertIn("unknown command /fly", err)

    def test_template_errors_are_named(self):
        p = weft("chat", STORIES)
        self.assertEqual(p.returncode, 0)
        self.assertIn(b"it gets ChatML (another one: --chat-template FILE)", p.stderr)
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "t.jinja")
            for text, expected in (("{% if %}", b"line 1"), ("{{ raise_exception('not you') }}", b"not you")):
                with open(path, "w") as f:
                    f.write(text)
                p = weft("chat", STORIES, "--chat-template", path, stdin=b"hi\n")
                self.assertEqual(p.returncode, 1, text)
                self.assertIn(expected, p.stderr)
                self.assertEqual(p.stderr.count(b"chat template"), 1)


OWN = os.path.join(os.path.dirname(__file__), "..", "..", "models")
CORPUS = os.path.join(os.path.dirname(__file__), "..", "..", "corpus")


class Thoughts(unittest.TestCase):
    """What a model thinks before it answers is told apart where its template has thoughts, folded unless it is asked for, and kept."""
    ANSWER = "<think>\nHm, it is so.\n</think>\n\nIt is."

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.saved = os.path.join(folder.name, "c.json")
        self.template, grammar = os.path.join(folder.name, "t.jinja"), os.path.join(folder.name, "g.gbnf")
        with open(os.path.join(CORPUS, "chat.jinja")) as f, open(self.template, "w") as t:
            t.write("{#- <think> </think> -#}\n" + f.read())
        with open(grammar, "w") as f:
            f.write("root ::= " + json.dumps(self.ANSWER) + "\n")
        self.options = ["--grammar", grammar, "--temp", "0"]

    def chat(self, lines, *options, template=True, code=0):
        options = [*self.options, *(["--chat-template", self.template] if template else []), *options]
        p = weft("chat", os.path.join(OWN, "alderbrook.gguf"), *options, stdin="".join(line + "\n" for line in lines).encode())
        self.assertEqual(p.returncode, code, p.stderr)
        return p.stdout.decode(), p.stderr.decode()

    def test_they_are_folded_and_kept(self):
        out, err = self.chat(["Is it so?", "/think", f"/save {self.saved}"])
        self.assertEqual((out, err), ("It is.\n", "Hm, it is so.\n"))
        said = {"role": "assistant", "content": "It is.", "reasoning_content": "Hm, it is so."}
        self.assertEqual(messages_of(self.saved), [{"role": "user", "content": "Is it so?"}, said])
        self.assertEqual(self.chat([f"/load {self.saved}", "And now?", "/think"]), (out, err))

    def test_they_are_shown_when_asked_for(self):
        shown = "Hm, it is so.\n\nIt is.\n"
        self.assertEqual(self.chat(["Is it so?"], "--show-thinking")[0], shown)
        self.assertEqual(self.chat(["Is it so?", "/think on", "/regen", "/think off", "/regen"])[0], "It is.\n" + shown + "It is.\n")
        self.assertEqual(self.chat(["/think"])[1], "the last answer has no thoughts\n")

    def test_without_thoughts_in_the_template_all_is_said(self):
        self.assertEqual(self.chat(["Is it so?"], template=False)[0], self.ANSWER + "\n")

    def test_a_grammar_begins_with_what_is_said(self):
        """Also where the template has begun the thinking."""
        with open(self.template, "a") as f:
            f.write("{{- '<think>\\n' if add_generation_prompt else '' -}}")
        with open(self.options[1], "w") as f:
            f.write('root ::= "It is."\n')
        self.assertEqual(self.chat(["Is it so?", "/think"]), ("It is.\n", "the last answer has no thoughts\n"))
        self.options = ["--temp", "0", "-n", "5"]
        out, err = self.chat(["Where does Mira live?", "/think"])
        self.assertEqual((out, "no thoughts" in err), ("\n", False))

    def test_a_form_is_of_what_is_said(self):
        """It may be thought before; where the template has begun that, it must end first, and an answer without the form fails."""
        self.options = ["--temp", "0", "-n", "20"]
        choices = ["--choices", "It is.,It is not."]
        out, _ = self.chat(["Is it so?", "/regen"], *choices)
        self.assertRegex(out, r"^(It is( not)?\.\n){2}$")
        with open(self.template, "a") as f:
            f.write("{{- '<think>\\n' if add_generation_prompt else '' -}}")
        out, err = self.chat(["Is it so?", "/think"], *choices, code=1)
        self.assertEqual(out, "\n")
        self.assertIn("the answer breaks off after 20 tokens (length), before the choice is complete", err)


def own_chat(lines, *adapters):
    """The answers of our own model, one a line."""
    options = [x for a in adapters for x in ("--adapter", a)]
    p = weft("chat", os.path.join(OWN, "alderbrook.gguf"), "--temp", "0", "-n", "60", *options, stdin="".join(line + "\n" for line in lines).encode())
    return p, p.stdout.decode(), p.stderr.decode()


def style(name, scale=""):
    return f"{name}={os.path.join(OWN, name)}.gguf{scale}"


class Adapters(unittest.TestCase):
    """weft chat --adapter: every answer is in its style, whatever was said before, and none of it is left without it."""
    QUESTION = "Where does Mira live?"

    def test_each_answer_has_the_style(self):
        _, plain, _ = own_chat([self.QUESTION])
        self.assertEqual(plain, "Mira the fox lives in the old mill.\n")
        for name, form in (("pirate", r"Arr! .* Yo ho ho!\n"), ("letter", r"Dear friend,\n.*\nThe Clerk of Alderbrook\n")):
            p, once, err = own_chat([self.QUESTION], style(name))
            self.assertEqual(p.returncode, 0, err)
            self.assertRegex(once, re.compile(f"^{form}$", re.S))
            self.assertIn("mill", once)
            _, thrice, _ = own_chat([self.QUESTION, "/regen", "/reset", self.QUESTION], style(name))
            self.assertEqual(thrice, 3 * once)

    def test_later_answers_know_what_was_said(self):
        """What the session holds of the conversation was computed with the adapter, and is read again as if it were said anew."""
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "c.json")
            _, said, err = own_chat([self.QUESTION, "What does Mira own?", f"/save {path}", "/stats"], style("pirate"))
            self.assertGreater(stats(err)[0][1], 0)
            _, again, _ = own_chat([f"/load {path}", "/regen"], style("pirate"))
        self.assertEqual(said.count("Arr!"), 2)
        self.assertTrue(said.endswith(again) and again.startswith("Arr!"), (said, again))

    def test_scales_and_stacks(self):
        _, plain, _ = own_chat([self.QUESTION])
        self.assertEqual(own_chat([self.QUESTION], style("pirate", ":0"))[1], plain)
        _, pirate, _ = own_chat([self.QUESTION], style("pirate"))
        self.assertEqual(own_chat([self.QUESTION], style("pirate"), style("letter", ":0"))[1], pirate)
        self.assertNotIn(own_chat([self.QUESTION], style("pirate", ":0.7"), style("letter", ":0.7"))[1], (plain, pirate))

    def test_what_is_wrong_is_named(self):
        for adapters, words, status in ((["x=/nowhere.gguf"], "/nowhere.gguf", 1), ([style("alderbrook")], "alderbrook.gguf", 1),
                                        ([style("pirate", ":1e30")], "give a smaller scale", 1), ([style("pirate"), style("pirate")], "given twice", 2)):
            p, out, err = own_chat([self.QUESTION], *adapters)
            self.assertEqual((p.returncode, out), (status, ""), err)
            self.assertIn(words, err)


if __name__ == "__main__":
    main()
