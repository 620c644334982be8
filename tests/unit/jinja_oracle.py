#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The interpreter prints what Debian's python3-jinja2 prints, set up as Hugging Face does.  Usage: jinja_oracle.py
language|templates|templates_own|shapes|shapes_own|variants|variants_own DRIVER

`language` runs the snippets of jinja_snippets.py. `templates` runs every chat template of the reference material over the conversations of
jinja_conversations.py, each with and without a generation prompt; `templates_own` those of templates/ beside this. `shapes` and `shapes_own` render a
conversation with calls as clients spell it in many ways, and every
template must print what jinja2 prints of the one way that it wants. `variants` and `variants_own` render conversations with and without tools, a system
message, thinking and a generation prompt, with the variables that `apply_chat_template` of transformers sets and no others (but what a template
calls enable_thinking, where that is said): tools and documents are None
where there are none; functions, date_string and datetime are not there. Both sides must print the same bytes or both must refuse; where the template
itself refuses through raise_exception, the message must be the same. Exit status: 0 same, 1 different, 77 nothing to compare with."""
import datetime
import json
import os
import re
import subprocess
import sys

try:
    import jinja2
    import jinja2.ext
    import jinja2.meta
    import jinja2.sandbox
except ImportError:
    print("SKIP: python3-jinja2 is not installed")
    sys.exit(77)

NOW = 1722470400 + 3661  # 1 August 2024, 01:01:01 UTC
FORMAT, ARGUMENT, LIMIT, UNSUPPORTED = 3, 5, 6, 2
# One of so many conversations for each template, but all of them, where programs are slow and it is not make test-all.
SLOW = "WEFT_EMULATOR" in os.environ or "TSAN_OPTIONS" in os.environ
SOME = "ASAN_OPTIONS" in os.environ and os.environ.get("WEFT_SWEEPS") != "1"
EVERY = 6 if SLOW else 3 if SOME else 1


class Generation(jinja2.ext.Extension):
    """{% generation %}, which only marks what an assistant wrote."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


class Refusal(jinja2.exceptions.TemplateError):
    """What raise_exception raises."""


def raise_exception(message):
    raise Refusal(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(text):
    return datetime.datetime.fromtimestamp(NOW).strftime(text)


def environment(mutable):
    kind = jinja2.sandbox.SandboxedEnvironment if mutable else jinja2.sandbox.ImmutableSandboxedEnvironment
    env = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.filters["from_json"] = json.loads  # not Hugging Face's, but templates use it
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


compiled = {}


def oracle(env, source, context):
    """(text, None), or (None, exception)."""
    try:
        if (env, source) not in compiled:
            compiled[env, source] = env.from_string(source)
        text = compiled[env, source].render(**context)
        text.encode()
        return text, None
    except Exception as e:  # whatever Python raises is a refusal, endless recursion included
        return None, e


class Driver:
    def __init__(self, path):
        env = dict(os.environ, TZ="UTC")
        self.process = subprocess.Popen(os.environ.get("WEFT_EMULATOR", "").split() + [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, job):
        self.process.stdin.write(json.dumps(dict(job, now=NOW), ensure_ascii=False).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("FAIL: the driver died on " + json.dumps(job)[:2000])
        return json.loads(line)

    def close(self):
        """A sanitizer speaks at the end, too."""
        self.process.stdin.close()
        if self.process.wait():
            raise SystemExit("FAIL: the driver ended with status %d" % self.process.returncode)


def difference(ours, text, error):
    """None when both agree, else what differs."""
    if error is None:
        if "error" in ours:
            return "we refuse: %s; jinja2 prints %r" % (ours["error"], text)
        if ours["text"] != text:
            at = next((i for i, (a, b) in enumerate(zip(ours["text"], text)) if a != b), min(len(text), len(ours["text"])))
            low = max(0, at - 40)
            return "at %d: ours %r, jinja2 %r" % (at, ours["text"][low:at + 60], text[low:at + 60])
        if sum(n for n, _ in ours["segments"]) != len(text.encode()):
            return "the segments do not cover the text"
        return None
    if "error" not in ours:
        return "we print %r; jinja2 refuses: %s: %s" % (ours["text"][:300], type(error).__name__, error)
    if isinstance(error, Refusal) and str(error)[:200] not in ours["error"]:
        return "other refusals: %r and %r" % (ours["error"], str(error))
    wanted = (LIMIT,) if isinstance(error, (OverflowError, RecursionError)) else (FORMAT, ARGUMENT)
    if ours["status"] not in wanted:
        return "refused with status %d: %s; jinja2: %s: %s" % (ours["status"], ours["error"], type(error).__name__, error)
    return None


SPECIAL = re.compile(rb"<\|[^|<>\s]{1,40}\|>|<\xef\xbd\x9c[^<>]{1,60}?\xef\xbd\x9c>|\[/?[A-Z][A-Z_]+\]|<(?:start|end)_of_turn>")


def origin_problem(ours, conversation):
    """What is wrong with whose bytes are whose: special tokens are the template's, except those that the conversation spells."""
    if "error" in ours:
        return None
    text = ours["text"].encode()
    from_user = b"".join(bytes([user]) * n for n, user in ours["segments"])
    spelled = json.dumps(conversation, ensure_ascii=False).encode()
    for match in SPECIAL.finditer(text):
        marks = from_user[match.start():match.end()]
        if match.group().lower() == b"<|weft_injected|>":
            if not all(marks):
                return "an injected special token passes for the template's"
        elif match.group() not in spelled and any(marks):
            return "%r of the template passes for the user's" % match.group().decode()
    return None


def reads_problem(driver, env, source):
    """What differs between the variables that we say it reads from outside and those that jinja2 finds; None: nothing, or it does not compile."""
    names = sorted(set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", source)))
    ours = driver.ask({"template": source, "reads": names})
    try:
        found = sorted(jinja2.meta.find_undeclared_variables(env.parse(source)))
    except jinja2.exceptions.TemplateError:
        return None
    reads = [name for name in ours.get("reads", found) if name not in env.globals]
    return None if reads == found else "we say it reads %s, jinja2 %s" % (reads, found)


def run_language(driver):
    from jinja_snippets import CONTEXT, SNIPPETS

    strict, loose = environment(False), environment(True)
    differences = refusals = 0
    for snippet in SNIPPETS:
        what = reads_problem(driver, strict, snippet)
        if what:
            differences += 1
            print("DIFFERENT %r\n    %s" % (snippet, what))
        for env, mutation in ((strict, False), (loose, True)):
            # A fresh copy each time: some snippets change what they are given.
            text, error = oracle(env, snippet, json.loads(json.dumps(CONTEXT)))
            ours = driver.ask({"template": snippet, "context": CONTEXT, "mutation": mutation})
            refusals += error is not None
            what = difference(ours, text, error)
            if what:
                differences += 1
                print("DIFFERENT %r%s\n    %s" % (snippet, " (mutable)" if mutation else "", what))
    print("%d snippets in two sandboxes: %d refused by both, %d differences" % (len(SNIPPETS), refusals, differences))
    return differences


def templates_in(folder):
    """Names and texts of the templates there, by name."""
    found = []
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".jinja")):
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as f:
            found.append((name, f.read()))
    return found


def run_templates(driver, folder):
    from jinja_conversations import CONVERSATIONS, TOKENS

    env, all_of_them = environment(False), templates_in(folder)
    count = printed = differences = 0
    for at, (name, source) in enumerate(all_of_them):
        what = reads_problem(driver, env, source)
        if what:
            differences += 1
            print("DIFFERENT %s\n    %s" % (name, what))
        for title, conversation in CONVERSATIONS[at % EVERY::EVERY]:
            for prompt in (False, True):
                kwargs = conversation.get("kwargs", {})
                chat = {"messages": conversation["messages"], "tools": conversation.get("tools"), "kwargs": kwargs,
                        "tokens": TOKENS, "add_generation_prompt": prompt}
                context = dict(TOKENS, messages=conversation["messages"], tools=conversation.get("tools"), documents=None,
                               add_generation_prompt=prompt)
                context.update(kwargs)
                text, error = oracle(env, source, json.loads(json.dumps(context)))
                ours = driver.ask({"template": source, "chat": chat})
                what = difference(ours, text, error) or origin_problem(ours, conversation)
                count += 1
                printed += error is None
                if what:
                    differences += 1
                    print("DIFFERENT %s, %s, prompt %s\n    %s" % (name, title, prompt, what))
    print("%d templates, %d conversations: %d renderings, %d printed by both, %d refused by both, %d differences"
          % (len(all_of_them), len(CONVERSATIONS), count, printed, count - printed, differences))
    return differences


# They print arguments as they are: JSON that is text, and of an object what Python prints, or they refuse it.
WANT_TEXT = {"meetkai-functionary-medium-v3.2.jinja", "verbatim.jinja"}
# And so does this one, which shows calls only of messages whose content is None.
WANT_NONE = {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja"}


def wanted(name):
    """Whether a template wants arguments as text, and None beside calls."""
    return name in WANT_TEXT | WANT_NONE, name in WANT_NONE


def run_shapes(driver, folder):
    from jinja_conversations import SHAPES, TOKENS

    env, all_of_them = environment(False), templates_in(folder)
    count = printed = differences = 0
    for at, (name, source) in enumerate(all_of_them):
        for title, tools, given, seen in SHAPES[at % EVERY::EVERY]:
            context = dict(TOKENS, messages=seen(*wanted(name)), tools=tools or None, documents=None, add_generation_prompt=True,
                           enable_thinking=True)
            text, error = oracle(env, source, json.loads(json.dumps(context)))
            ours = driver.ask({"template": source, "normal": True,
                               "chat": {"messages": given, "tools": tools, "kwargs": {}, "tokens": TOKENS, "add_generation_prompt": True}})
            what = difference(ours, text, error)
            count += 1
            printed += error is None
            if what:
                differences += 1
                print("DIFFERENT %s, %s\n    %s" % (name, title, what))
    print("%d templates, %d ways to spell a conversation: %d printed by both, %d refused by both, %d differences"
          % (len(all_of_them), len(SHAPES), printed, count - printed, differences))
    return differences


# What templates that do not read enable_thinking call it: the variable, and its values where that is true and false.
THINKING = {
    "Cohere2MoE.jinja": ("reasoning", {True: True, False: False}),
    "ByteDance-Seed-OSS.jinja": ("thinking_budget", {False: 0}),
    "Kimi-K3.jinja": ("thinking", {True: True, False: False}),
    "MiniMax-M3.jinja": ("thinking_mode", {True: "enabled", False: "disabled"}),
    "ibm-granite-granite-3.3-2B-Instruct.jinja": ("thinking", {True: True, False: False}),
    "tencent-Hy3.jinja": ("reasoning_effort", {True: "high", False: "no_think"}),
    "upstage-Solar-Open-100B.jinja": ("reasoning_effort", {False: "minimal"}),
    "thinking.jinja": ("thinking", {True: True, False: False}),
}


def own_thinking(name, kwargs):
    """What is said of enable_thinking under the template's own name."""
    variable, values = THINKING.get(name, ("", {}))
    value = values.get(kwargs.get("enable_thinking"))
    return {} if value is None or variable in kwargs else {variable: value}


def thinking_problem(driver, name, source):
    """A template in the table must heed it, said the one way and the other."""
    from jinja_conversations import TOKENS, user

    if name not in THINKING:
        return None
    texts = [driver.ask({"template": source, "normal": True, "chat": {"messages": [user("Why?")], "tools": None, "kwargs": {"enable_thinking": on},
                                                                       "tokens": TOKENS, "add_generation_prompt": True}}) for on in (True, False)]
    return "enable_thinking changes nothing" if "error" in texts[0] or texts[0] == texts[1] else None


def run_variants(driver, folder):
    from jinja_conversations import TOKENS, variants

    env, all_of_them = environment(False), templates_in(folder)
    count = printed = differences = 0
    for at, (name, source) in enumerate(all_of_them):
        chats = list(variants(*wanted(name)))
        what = thinking_problem(driver, name, source)
        if what:
            differences += 1
            print("DIFFERENT %s\n    %s" % (name, what))
        every = 6 if SLOW or SOME else 1  # there are many
        for title, chat in chats[at % every::every]:
            # What transformers gives a template: these, the special tokens, and the caller's own.
            context = {"messages": chat["messages"], "tools": chat["tools"], "documents": None, "add_generation_prompt": chat["add_generation_prompt"],
                       **TOKENS, "enable_thinking": True, **chat["kwargs"], **own_thinking(name, chat["kwargs"])}
            text, error = oracle(env, source, json.loads(json.dumps(context)))
            ours = driver.ask({"template": source, "normal": True, "chat": {**chat, "tokens": TOKENS}})
            what = difference(ours, text, error)
            count += 1
            printed += error is None
            if what:
                differences += 1
                print("DIFFERENT %s, %s\n    %s" % (name, title, what))
    print("%d templates: %d renderings, %d printed by both, %d refused by both, %d differences"
          % (len(all_of_them), count, printed, count - printed, differences))
    return differences


def main():
    os.environ["TZ"] = "UTC"
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    what, driver = sys.argv[1], Driver(sys.argv[2])
    if what == "language":
        differences = run_language(driver)
        driver.close()
        return 1 if differences else 0
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.append(os.path.join(here, "..", "material"))
    from where import NEEDS_REFERENCE, shared

    folder = os.path.join(here, "templates") if what.endswith("_own") else shared("templates")
    if not os.path.isdir(folder):
        print("SKIP: " + NEEDS_REFERENCE + "chat templates of real models (templates/)")
        return 77
    run = {"shapes": run_shapes, "variants": run_variants}.get(what.partition("_")[0], run_templates)
    differences = run(driver, folder)
    driver.close()
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
