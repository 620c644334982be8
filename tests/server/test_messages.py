# SPDX-License-Identifier: Apache-2.0
"""Claims about the shapes of messages: server, chat and `weft adapter train` show a template the same conversation, however a client spelled it, with the
arguments of calls in the form that the template wants.

usage: test_messages.py build/weft"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import real
from servers import EMULATOR, PATIENCE, PROGRAM, ROOT, user

ARGUMENTS = {"place": "Zürich, \"CH\"", "days": [1, None, 2.5]}
TEXT = json.dumps(ARGUMENTS, ensure_ascii=False)
# What is done with arguments, by what the template wants; what the prompt shows of them.
WANTS = {
    "an object": ("{{ c.function.arguments | tojson }}", TEXT),
    "a mapping": ("{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }};{% endfor %}", None),
    "either": ("{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}", TEXT),
    "text": ("{{ c.function.arguments }}", TEXT),
    "text and no object": ("{{ '' + c.function.arguments }}", TEXT),
}
# It looks at members as templates do, and would print null.
TEMPLATE = """{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.name is defined %}({{ m.name }}){% endif %}{% if m.reasoning_content is defined %}[{{ m.reasoning_content }}]{% endif %}{{ m.content }}
{%- if m.tool_calls is defined %}{% for c in m.tool_calls %}<call>{{ c.function.name }} ARGUMENTS</call>{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
NULLS = {"name": None, "refusal": None, "audio": None, "function_call": None, "reasoning_content": None, "annotations": None}


def spelled(arguments, content="", calls=None, **more):
    """Two questions; the first is answered by a call."""
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}, **(calls or {})}
    return [
        {**user("Weather?")[0], **more},
        {"role": "assistant", "content": content, "tool_calls": [call], **more},
        {"role": "tool", "content": "rain", "tool_call_id": "c1", **more},
        {"role": "assistant", "content": "Rain.", **more},
        {**user("And now?")[0], **more},
    ]


def older(arguments):
    messages = spelled(arguments)
    messages[1] = {"role": "assistant", "content": None, "function_call": messages[1]["tool_calls"][0]["function"]}
    messages[2] = {"role": "function", "content": "rain"}
    return messages


def ways():
    """The same conversation as clients spell it."""
    yield spelled(ARGUMENTS)
    yield spelled(TEXT)
    yield spelled(TEXT, None)
    yield spelled(TEXT, [])
    yield spelled(TEXT, None, {"index": None, "custom": None}, **NULLS)
    for arguments in (ARGUMENTS, TEXT):  # as it was spelled before there were tools
        for nulls in ({}, NULLS):
            yield [{**nulls, **m} for m in older(arguments)]
    for none in (None, []):
        yield [{"tool_calls": none, **m} for m in spelled(TEXT)]


class Messages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def template(self, wants):
        path = os.path.join(self.folder, wants.replace(" ", "-") + ".jinja")
        with open(path, "w") as f:
            f.write(TEMPLATE.replace("ARGUMENTS", WANTS[wants][0]))
        return path

    def weft(self, *args, stdin=""):
        p = subprocess.run([*EMULATOR, PROGRAM, *args], input=stdin.encode(), capture_output=True, timeout=PATIENCE)
        self.assertNotIn(b"Sanitizer", p.stderr)
        return p

    def test_served(self):
        """One prompt, whatever the template wants; and text that is no JSON is the request's fault."""
        for wants, (_, shown) in WANTS.items():
            server = real.serve("--chat-template", self.template(wants))
            prompts = [server.post("/apply-template", {"messages": m}) for m in ways()]
            self.assertEqual([a.status for a in prompts], [200] * len(prompts), prompts[0].body)
            first = prompts[0].json["prompt"]
            self.assertEqual([a.json["prompt"] for a in prompts], [first] * len(prompts), wants)
            self.assertIn("<call>weather " + (shown or "place=Zürich, \"CH\";") , first)
            answer = server.post("/v1/chat/completions", {"messages": spelled("{'place': 1}"), "max_tokens": 1})
            self.assertEqual((answer.status, answer.json["error"]["param"]), (400, "messages[1].tool_calls[0].function.arguments"))
            real.checked_stop(server)

    def test_variables_of_templates(self):
        """enable_thinking is true unless the request says otherwise; an effort reaches a template that reads it, and is refused by name otherwise."""
        path = os.path.join(self.folder, "effort.jinja")
        with open(path, "w") as f:
            f.write("{% if enable_thinking is not defined %}as it likes{% elif enable_thinking %}thinks{% else %}does not{% endif %}|"
                    "{% set verbosity = 'set here' %}{{ verbosity }}|{{ reasoning_effort | default('medium') }}")
        server = real.serve("--chat-template", path)

        def ask(**more):
            return server.post("/apply-template", {"messages": [{"role": "user", "content": "hi"}], **more})
        for more, text in (
            ({}, "thinks|set here|medium"),
            ({"chat_template_kwargs": {"enable_thinking": False}}, "does not|set here|medium"),
            ({"chat_template_kwargs": {"enable_thinking": None}}, "as it likes|set here|medium"),
            ({"reasoning_effort": "low"}, "thinks|set here|low"),
            ({"reasoning_effort": None, "verbosity": None}, "thinks|set here|medium"),
            ({"reasoning_effort": "high", "chat_template_kwargs": {"x": None}}, "thinks|set here|high"),
        ):
            answer = ask(**more)
            self.assertEqual((answer.status, answer.json.get("prompt")), (200, text), more)
        for more, field, words in (
            ({"verbosity": "low"}, "verbosity", "knows none; leave it out"),
            ({"chat_template_kwargs": {"x": 1}}, "chat_template_kwargs", "'chat_template_kwargs.x'"),
            ({"chat_template_kwargs": {"enable_thinking": "no"}}, "chat_template_kwargs", "'chat_template_kwargs.enable_thinking' must be true or false"),
            ({"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "high"}}, "reasoning_effort", "stands in 'chat_template_kwargs' too"),
        ):
            for answer in ask(**more), server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1, **more}):
                self.assertEqual(answer.status, 400, answer.body)
                self.assertIn(words, answer.json["error"]["message"])
            self.assertEqual(answer.json["error"]["param"], field)
        real.checked_stop(server)

    def test_an_effort_that_does_nothing(self):
        """A value that a template reads and drops is refused by name; one that it knows is taken, also where it is what holds anyway."""
        path = os.path.join(self.folder, "drops.jinja")
        with open(path, "w") as f:
            f.write("{% set effort = reasoning_effort if reasoning_effort is defined else \"high\" %}{% if effort in ['low', 'minimal'] %}short{% endif %}|"
                    "{% if verbosity is defined %}{% if verbosity not in ['low'] %}{{ raise_exception('no ' + verbosity) }}{% endif %}{% endif %}ask")
        server = real.serve("--chat-template", path)
        for value, text in (("low", "short|ask"), ("minimal", "short|ask"), ("high", "|ask"), ("medium", None), ("lo", None), ("", None)):
            for url, more in (("/apply-template", {}), ("/v1/chat/completions", {"max_tokens": 1})):
                answer = server.post(url, {"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": value, **more})
                self.assertEqual(answer.status, 200 if text else 400, (value, answer.body))
                if not text:
                    self.assertEqual(answer.json["error"].get("param"), "reasoning_effort" if more else None)
                    self.assertIn("'%s' changes nothing" % value, answer.json["error"]["message"])
                elif not more:
                    self.assertEqual(answer.json["prompt"], text)
        for value, status in (("low", 200), ("high", 400)):
            answer = server.post("/apply-template", {"messages": [{"role": "user", "content": "hi"}], "verbosity": value})
            self.assertEqual(answer.status, status, answer.body)
        real.checked_stop(server)

    def test_chatted(self):
        """weft chat goes on from a conversation that was saved elsewhere, as it does from the same one in its own shape."""
        for wants in ("an object", "text and no object"):
            said = set()
            for i, messages in enumerate(ways()):
                path = os.path.join(self.folder, "c%d.json" % i)
                with open(path, "w") as f:
                    json.dump(messages, f)
                p = self.weft("chat", real.MODEL, "--chat-template", self.template(wants), "--temp", "0", "-n", "8", stdin=f"/load {path}\n/regen\n/stats\n")
                self.assertEqual(p.returncode, 0, p.stderr)
                said.add((p.stdout, p.stderr.split(b" of ")[0]))
            self.assertEqual(len(said), 1, wants)
            with open(path, "w") as f:
                json.dump(spelled("no JSON"), f)
            p = self.weft("chat", real.MODEL, "--chat-template", self.template(wants), stdin=f"/load {path}\n/regen\n")
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"'messages[1].tool_calls[0].function.arguments' must be a JSON object", p.stderr)

    def test_thoughts_that_templates_strip(self):
        """A template that leaves out of earlier answers what they began with: what the session holds of them is not reused then, and an answer is what a
        fresh session gives to the same conversation."""
        path, saved = os.path.join(self.folder, "strips.jinja"), os.path.join(self.folder, "stripped.json")
        with open(os.path.join(ROOT, "corpus", "chat.jinja")) as f:
            source = f.read()
        with open(path, "w") as f:
            f.write(
                "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split(' ')[2:] | join(' ') if m.role =="
                " 'assistant' and not loop.last else m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt"
                " %}<|im_start|>assistant\n{% endif %}"
            )
        self.assertIn("<|im_start|>", source)  # the turns that the model knows
        options = ("chat", real.MODEL, "--chat-template", path, "--temp", "0", "-n", "40")
        questions = ["Where does Mira live?", "What does Mira own?", "Where does Mira live?"]
        talked = self.weft(*options, stdin="\n".join([*questions, f"/save {saved}", "/stats"]) + "\n")
        self.assertEqual(talked.returncode, 0, talked.stderr)
        with open(saved) as f:
            messages = json.load(f)["messages"]
        self.assertEqual(len(messages), 6)
        for n in (2, 4, 6):
            with open(saved, "w") as f:
                json.dump(messages[:n], f)
            fresh = self.weft(*options, stdin=f"/load {saved}\n/regen\n/stats\n")
            self.assertEqual(fresh.stdout.decode().strip(), messages[n - 1]["content"].strip(), n)
        held = [p.stderr.decode().split("context ")[1].split(" ")[0] for p in (talked, fresh)]
        self.assertEqual(*held)  # as many tokens, read at once or turn by turn


if __name__ == "__main__":
    unittest.main(verbosity=1)
