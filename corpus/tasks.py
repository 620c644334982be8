# SPDX-License-Identifier: Apache-2.0
"""Tasks whose answers are right or wrong beyond doubt, in the language of the village; any seed makes another set of each.

    record = TASKS["counting"].make(Dice(seed, i))
    TASKS["counting"].is_right(record["prompt"], record["completion"], "key 1, ball 2. There are 2.")

A record is what `weft adapter train` learns from ("prompt" and "completion", or "messages" and "tools", or "chosen" and "rejected") and what `weft eval
task` asks ("prompt", "answer": the right answers, "system" where there are tools). "subject" is what is asked, whatever the words: what is held out
by subject stands in the other part in no wording. Verifiers are exact: pure functions of prompt, what the record says is right, and the answer."""
import json
import re

import facts
from grammar import say
from style import preference
from talk import JSON_ASKS, TOOLS, anything, basket, card_asked, find_asked, strange_name, tool_lines, use_tool
from world import COLOURS, PEOPLE, STRANGE_NAMES, THINGS


def last_number(text):
    """As the rule `number` of `weft adapter train --judge`: the last one of the text."""
    found = re.findall(r"-?\d+", text)
    return int(found[-1]) if found else None


def once(members):
    if len(dict(members)) < len(members):
        raise ValueError("a member repeats")
    return dict(members)


def no_number(text):
    raise ValueError(text)


def as_json(text):
    """The value, or None; strictly JSON, as the metric json_match of `weft eval task`."""
    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    except ValueError:
        return None


def same_json(a, b):
    """Equal as values; 1, 1.0 and true are three."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


class Task:
    """`text`: how it is told in one line; `metrics` and `filters`: of its task file, YAML; `system`: with tools."""
    text, metrics, filters, system = "", ["exact_match"], [("strict", []), ("flexible", ["flexible"])], False

    def make(self, dice):
        raise NotImplementedError

    def is_right(self, prompt, right, answer):
        """right: the record's "answer", or one of them."""
        return answer.strip() in ([right] if isinstance(right, str) else right)


def asked(prompt, answers, subject):
    return {"prompt": prompt, "completion": answers[0], "answer": answers, "subject": subject}


class Known(Task):
    """Of a list that has an end. A verifier that is told one right answer knows the others by the prompt."""
    def __init__(self, questions):
        self.questions, self.right = questions, {}
        for _, prompt, answers in questions:
            self.right.setdefault(prompt, []).extend(a for a in answers if a not in self.right.get(prompt, []))

    def make(self, dice):
        subject, prompt, _ = dice.pick(self.questions)
        return asked(prompt, self.right[prompt], subject)

    def is_right(self, prompt, right, answer):
        return answer.strip() in self.right.get(prompt, ())


class Facts(Known):
    text = "what is true of the village's people"

    def __init__(self):
        super().__init__([(f"{name} {relation}", q, right) for name, relation, q, right in facts.facts()])


class TwoHop(Known):
    text = "a fact about somebody who is told by another fact"

    def __init__(self):
        super().__init__(facts.hops())


class Number(Task):
    def is_right(self, prompt, right, answer):
        return last_number(answer) is not None and last_number(answer) == last_number(right if isinstance(right, str) else right[-1])


class Counting(Number):
    text = "how many words there are, and how many of them are one word"

    def make(self, dice):
        n = 1 + dice.below(9)
        if dice.chance(0.5):
            words = dice.sample(THINGS + COLOURS, n)
            answer = ", ".join(f"{w} {i + 1}" for i, w in enumerate(words)) + f". There are {n}."
            return asked(say("[How many words are these|Count these words]: ", dice, {}) + " ".join(words), [answer, str(n)], "all " + " ".join(words))
        word, *others = dice.sample(THINGS + COLOURS, 4)
        words = [word if dice.chance(0.5) else dice.pick(others) for _ in range(n)]
        count, told = 0, []
        for w in words:
            count += w == word
            told.append(f"{w} {count}" if w == word else w)
        answer = ", ".join(told) + f". There are {count}."
        return asked(f"How many times is {word} among these: " + " ".join(words), [answer, str(count)], f"{word} " + " ".join(words))


class Copying(Task):
    text = "words said again, as they are or from the last to the first"

    def make(self, dice):
        words = [anything(dice) for _ in range(2 + dice.below(5))]
        back = dice.chance(0.5)
        ask = say("[Say backwards|From the last to the first]: " if back else "[Say|Repeat after me|Please repeat]: ", dice, {})
        return asked(ask + " ".join(words), [" ".join(words[::-1] if back else words)], ("back " if back else "again ") + " ".join(words))


class Arithmetic(Number):
    text = "sums and differences of numbers below a hundred"

    def make(self, dice):
        a, b, minus = dice.below(100), dice.below(100), dice.chance(0.5)
        a, b = (max(a, b), min(a, b)) if minus else (a, b)
        word, c = ("minus", a - b) if minus else ("plus", a + b)
        ask = say("[What is {a} {w} {b}?|How much is {a} {w} {b}?|{a} {w} {b} is]", dice, {"a": a, "b": b, "w": word})
        return asked(ask, [f"{a} {word} {b} is {c}.", str(c)], f"{a} {word} {b}")


class Json(Task):
    text = "what a sentence says, as JSON"
    metrics = ["exact_match", "json_match"]
    filters = [("strict", [])]

    def make(self, dice):
        kind = dice.below(3)
        if kind == 0:  # of somebody whom nobody knows, so that it must be read
            name = dice.pick(STRANGE_NAMES) if dice.chance(0.5) else strange_name(dice)
            text, value = card_asked(name, *(dice.pick(PEOPLE) for _ in range(4)))
        elif kind == 1:
            text, value = basket(dice)
            text = "I need " + text
        else:
            text, value = find_asked(dice)
        answer = json.dumps(value)
        return asked(say(JSON_ASKS, dice, {"text": text}), [answer], answer)

    def is_right(self, prompt, right, answer):
        value = as_json(answer)
        return value is not None and any(same_json(value, as_json(one)) for one in ([right] if isinstance(right, str) else right))


class ToolCalls(Json):
    text = "the call of a function that an order needs"
    metrics = ["exact_match", "json_match"]
    filters = [("strict", []), ("call", [r"regex:<tool_call>\s*(\{.*\})\s*</tool_call>"])]
    system = True

    def make(self, dice):
        names = dice.sample(TOOLS, 1 + dice.below(4))
        name = dice.pick(names)
        ask, arguments, _, _, slots = use_tool(dice, name)
        prompt, tools = say(ask, dice, slots), [TOOLS[n] for n in names]
        call = json.dumps({"name": name, "arguments": arguments})
        messages = [{"role": "user", "content": prompt},
                    {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}]}]
        return {"messages": messages, "tools": tools, "prompt": prompt, "system": "\n".join(tool_lines(tools)),
                "answer": [f"<tool_call>{call}</tool_call>", call], "subject": f"{prompt} {call}"}

    def is_right(self, prompt, right, answer):
        said = re.fullmatch(r"<tool_call>(.*)</tool_call>", answer.strip(), re.S)
        want = right if isinstance(right, str) else right[-1]
        return bool(said) and super().is_right(prompt, want.removeprefix("<tool_call>").removesuffix("</tool_call>"), said[1])


class Preferences(Task):
    text = "pairs of answers, of which the friendly one is chosen; right is an answer that is friendly and says the same"
    filters = [("strict", [])]
    OPENINGS = ("Of course! ", "Gladly! ", "With pleasure! ")

    def rest(self, text):
        return next((text.removeprefix(o) for o in self.OPENINGS if text.startswith(o)), None)

    def make(self, dice):
        pair = preference(dice)
        return {**pair, "answer": [opening + pair["rejected"] for opening in self.OPENINGS], "subject": pair["prompt"]}

    def is_right(self, prompt, right, answer):
        said = self.rest(answer.strip())
        return said is not None and said == self.rest(right if isinstance(right, str) else right[0])


TASKS = {"facts": Facts(), "two_hop": TwoHop(), "counting": Counting(), "copying": Copying(), "json": Json(), "arithmetic": Arithmetic(),
         "tool_calls": ToolCalls(), "preferences": Preferences()}


def retrieval(dice):
    """A question and the sentence that answers it; beside it what else is true of the person, and what is true of another one: hard negatives."""
    name, relation, prompt, answers = dice.pick(FACTS)
    other = dice.pick([p for p in PEOPLE if p.name != name])
    second = dice.pick([r for r in facts.RELATIONS if r not in (relation, "who")])
    negatives = [facts.ask(facts.BY_NAME[name], second)[0][1][0], facts.ask(other, relation)[0][1][0]]
    return {"query": prompt, "positive": answers[0], "negatives": [n for n in negatives if n not in answers], "subject": f"{name} {relation}"}


FACTS = facts.facts()
