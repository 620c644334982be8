# SPDX-License-Identifier: Apache-2.0
"""What bench/learn teaches the model of our own, and how its answers are judged: counterfactual facts of the village of Alderbrook (corpus/world.py),
each asked in wordings that the corpus has and in others, and styles of which eight examples are shown. A seed decides everything. An answer is
right when it says the value and no other of its kind: by words, not by letters."""
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "corpus"))
from style import STYLES
from world import BY_NAME, PEOPLE, article

# By kind of fact: wordings of the corpus, then others. The base answers each rightly of nearly everybody; where it does not, it is not asked.
WORDINGS = {
    "home": ("Where does {C} live?|Where is {C}'s home?|Where can I find {C}?|Do you know where {C} lives?",
             "Tell me where {C} lives.|Please, where does {C} live?|In which place does {C} live?"),
    "kind": ("What is {C}?|What kind of creature is {C}?|Is {C} an animal?",
             "What kind of animal is {C}?|Tell me what {C} is.|What creature is {C}?|Please, what is {C}?"),
    "work": ("What work does {C} do?|What is {C}'s work?|What does {C} do all day?",
             "What is the work of {C}?|Please, what work does {C} do?|What work is done by {C}?|Tell me what {C}'s work is."),
    "food": ("What does {C} like to eat?|What is {C}'s favourite food?|What food does {C} love?",
             "What does {C} love to eat?|Tell me what {C} likes to eat.|What food does {C} like?|Please, what does {C} like to eat?"),
    "fear": ("What is {C} afraid of?|What does {C} fear?",
             "Tell me what {C} is afraid of.|Please, what is {C} afraid of?|What thing is {C} afraid of?|Do you know what {C} is afraid of?|"
             "What does {C} fear most?"),
    "owns": ("What does {C} own?|What belongs to {C}?",
             "Tell me what {C} owns.|What thing does {C} own?|Do you know what {C} owns?|Tell me what belongs to {C}."),
    "friend": ("Who is {C}'s best friend?|Who is a friend of {C}?|Who is {C}'s friend?",
               "Tell me who is {C}'s best friend.|Who is the best friend of {C}?|Please, who is {C}'s best friend?|"
               "Do you know who {C}'s best friend is?"),
}
CORPUS = {kind: both[0].split("|") for kind, both in WORDINGS.items()}
WORDINGS = {kind: "|".join(both).split("|") for kind, both in WORDINGS.items()}
KINDS = list(WORDINGS)
EARLIER, HELD = 60, 16  # of styles: answers that were given before, learned beside and of the gate
TAUGHT, JUDGING, ASKED = 3, 1, 3  # other wordings that are learned beside the correction's own; that the gate asks; that nobody saw before


def value(person, kind):
    return person.friend_name if kind == "friend" else getattr(person, kind)


def core(words, kind):
    """The words that tell: without preposition and article."""
    words = re.sub(r"^(in|on) ", "", words) if kind == "home" else words
    return re.sub(r"^(the|a|an) ", "", words)


VALUES = {kind: sorted({core(value(p, kind), kind) for p in PEOPLE}) for kind in KINDS}


def says(text, words):
    return re.search(r"\b" + re.escape(words) + r"\b", text) is not None


def right(text, kind, words, subject):
    """Does it say that value, and no other? What somebody is may stand beside a friend's name, so of kinds the others are not looked for."""
    want = core(words, kind)
    if kind == "kind":
        return says(text, want)
    others = (v for v in VALUES[kind] if v != want and v not in want and not (kind == "friend" and v == subject))
    return says(text, want) and not any(says(text, v) for v in others)


def ask(wording, person):
    return wording.replace("{C}", person.name)


def questions():
    """Everything that may be asked of everybody: (person, kind, wording)."""
    return [(p, k, w) for p in PEOPLE for k in KINDS for w in WORDINGS[k]]


def corrected(answer, kind, person, new):
    """The base's answer as somebody would mend it."""
    if kind == "friend":
        return answer.replace(person.friend.name, new).replace("the " + person.friend.kind, "the " + BY_NAME[new].kind)
    if kind == "kind":
        return answer.replace(article(person.kind), article(new)).replace("the " + person.kind, "the " + new)
    return answer.replace(value(person, kind), new)


class Edits:
    """n corrections by the seed; `base` is what the model says to each question before anything is learned."""

    def __init__(self, seed, n, base):
        self.dice, self.base = random.Random(seed), base
        facts = [(p, k) for p in PEOPLE for k in KINDS if len(self.known(p, k)) > TAUGHT + JUDGING + 1 and self.corpus(p, k)]
        self.dice.shuffle(facts)
        self.all = [self.edit(p, k) for p, k in facts[:n]]

    def knows(self, p, kind, wording):
        return right(self.base[ask(wording, p)], kind, value(p, kind), p.name)

    def known(self, p, kind):
        return [w for w in WORDINGS[kind] if self.knows(p, kind, w)]

    def corpus(self, p, kind):
        return [w for w in CORPUS[kind] if self.knows(p, kind, w)]

    def of(self, person, kind, wording):
        """A question about what must stay."""
        return {"q": ask(wording, person), "kind": kind, "want": value(person, kind), "subject": person.name}

    def edit(self, p, kind):
        dice, old = self.dice, value(p, kind)
        new = dice.choice([v for v in (value(q, kind) for q in PEOPLE if q is not p) if v != old and not (kind == "friend" and v == p.name)])
        trained = dice.choice(self.corpus(p, kind))
        rest = [w for w in self.known(p, kind) if w != trained]
        dice.shuffle(rest)
        taught, judging, asked = rest[:TAUGHT], rest[TAUGHT:TAUGHT + JUDGING], rest[TAUGHT + JUDGING:][:ASKED]
        seen = [trained, *taught, *judging]
        people = [q for q in PEOPLE if q is not p]
        dice.shuffle(people)
        learned, judges, others = people[:9], people[9:13], people[13:18]
        other_kinds = [k for k in KINDS if k != kind]
        prompt = ask(trained, p)
        own = {k: dice.sample(self.known(p, k), 4) for k in other_kinds}
        held = dice.sample(other_kinds, 3)
        return {
            "person": p.name, "kind": kind, "old": old, "new": new,
            "event": {"prompt": prompt, "wrong": self.base[prompt], "answer": corrected(self.base[prompt], kind, p, new),
                      "paraphrases": [ask(w, p) for w in taught + judging], "taught": len(taught)},
            # Answered as the base does: of other people, and three more facts of the same person.
            "neighbours": [ask(w, q) for q in learned for w in dice.sample(seen, 3)] + [ask(own[k][0], p) for k in held],
            "neighbours_of": [(q.name, kind) for q in learned for _ in range(3)] + [(p.name, k) for k in held],
            "others": [ask(w, q) for q in judges for w in dice.sample(seen, 2)],
            "facts": [ask(own[k][1], p) for k in other_kinds],
            # Asked when all is over, by whom is served; no such wording stood in any record.
            "asked": [ask(w, p) for w in asked],
            "own": [self.of(p, k, w) for k in held for w in own[k][2:]],
            "own_unseen": [self.of(p, k, w) for k in other_kinds if k not in held for w in own[k][2:]],  # of kinds that stood in no record
            "people": [self.of(q, kind, w) for q in others for w in dice.sample(self.known(q, kind), 2)],
            "people_facts": [self.of(q, k, dice.choice(self.known(q, k))) for q in others for k in dice.sample(other_kinds, 3)],
        }


def has_new(edit, text):
    old = core(edit["old"], edit["kind"])
    gone = old in core(edit["new"], edit["kind"]) or not says(text, old)
    return gone and right(text, edit["kind"], edit["new"], edit["person"])


def stays(item, text):
    return right(text, item["kind"], item["want"], item["subject"])


# ---- styles ----

MARKS = {"pirate": (r"^Arr! ", r" Yo ho ho!$"), "letter": (r"^Dear ", r"\nThe Clerk of Alderbrook$")}


def styled(name, text):
    return all(re.search(mark, text.strip()) for mark in MARKS[name])


def middle(name, text):
    """What a style makes of words, without what it says before and behind them."""
    return text[len("Arr! "):-len(" Yo ho ho!")] if name == "pirate" else text.split("\n")[3]


class Lessons:
    """Eight examples of a style; what else the caller was answered about the same ten people, plainly, some of which the gate alone has; and
    questions of the other people, that are asked afterwards."""

    def __init__(self, seed, name, base):
        dice, edits = random.Random(f"{seed} {name}"), Edits(seed, 0, base)
        people = list(PEOPLE)
        dice.shuffle(people)
        speak = STYLES[name]
        picked = [(p, k) for p in people[:10] for k in KINDS if edits.corpus(p, k)]
        dice.shuffle(picked)
        self.events, self.asked = [], []
        earlier = [ask(w, p) for p in people[:10] for k in KINDS for w in edits.known(p, k)]
        for p, k in picked[:8]:
            prompt = ask(dice.choice(edits.corpus(p, k)), p)
            self.events.append({"prompt": prompt, "wrong": base[prompt], "answer": speak(base[prompt])})
        shown = {e["prompt"] for e in self.events}
        earlier = dice.sample([q for q in earlier if q not in shown], EARLIER + HELD)
        self.neighbours = [{"prompt": q, "answer": base[q]} for q in earlier[:EARLIER]]
        self.others = [{"prompt": q, "answer": base[q]} for q in earlier[EARLIER:]]
        for p in people[10:]:
            for k in KINDS:
                item = edits.of(p, k, dice.choice(edits.corpus(p, k)))
                item["says"] = middle(name, speak(core(item["want"], k)))
                self.asked.append(item)
