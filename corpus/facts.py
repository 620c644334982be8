# SPDX-License-Identifier: Apache-2.0
"""What is true of the village, as questions with every right answer; facts over two steps; and corrections: somebody of whom something is true
that was not, with all that should follow from it and all that should stay.

    ask(BY_NAME["Mira"], "home")     [("Where does Mira live?", ["Mira lives in the old mill.", ...]), ...], a pair per wording
    hops()                           questions about somebody who is not named ("What does the baker like to eat?")
    correction(Dice(7))              one edit: .wordings, .answers, .own, .near, .far

A question is (prompt, answers), the answer that one would learn first. Nothing here looks at a model."""
import copy

from grammar import every
from talk import about
from world import BY_NAME, PEOPLE

# What may become something else, and by which member of a person.
MAY_CHANGE = ("home", "kind", "work", "food", "fear", "owns")


def ask(person, relation):
    """Every wording of one question about a person, each with every right answer."""
    slots, questions = about(person)
    asked, answers = questions[relation]
    right = every("[" + answers + "]", slots)
    return [(q, right) for q in every("[" + asked + "]", slots)]


RELATIONS = tuple(r for r in about(PEOPLE[0])[1] if r != "friend_home")  # that is one over two steps


def facts():
    """All of them: (person's name, relation, prompt, answers)."""
    return [(p.name, r, q, right) for p in PEOPLE for r in RELATIONS for q, right in ask(p, r)]


# ---- over two steps ----

# Who is meant, and how an answer names them: of somebody's friend, or by what is theirs alone.
BRIDGES = {
    "friend": ("{o}'s best friend", "{o}'s best friend is {t}"),
    "work": ("the {p.work}", "The {p.work} is {t}"),
    "home": ("the one who lives {p.home}", "{t} lives {p.home}"),
    "owns": ("the owner of {p.owns}", "{t} owns {p.owns}"),
}
# What is asked of them, what is said of them behind the name, and which member of a person it is.
STEPS = {
    "home": ("Where does {b} live?", "lives {p.home}"),
    "food": ("What does {b} like to eat?", "likes {p.food} best of all"),
    "fear": ("What is {b} afraid of?", "is afraid of {p.fear}"),
    "owns": ("What does {b} own?", "owns {p.owns}"),
    "work": ("What work does {b} do?", "is the {p.work}"),
}


def hop(person, bridge, step):
    """(prompt, answers): the answers name who is meant first, but the last, which is what is asked for and nothing else."""
    who, named = BRIDGES[bridge]
    asked, said = STEPS[step]
    slots = {"p": person, "t": person.name, "o": person.friend_name}  # friends are friends of each other
    told, name = said.format(**slots), named.format(**slots)
    long = f"{name}, who {told}." if name.endswith(person.name) else f"{name}, and {told}."
    return asked.format(b=who.format(**slots)), [long, f"{person.name} {told}.", getattr(person, step)]


def hops():
    """All of them: (subject, prompt, answers); the subject is what must be joined, whatever the words."""
    return [(f"{b} {p.name} {s}", *hop(p, b, s)) for p in PEOPLE for b in BRIDGES for s in STEPS if b != s]


# ---- corrections ----

class Correction:
    """`person` is as they are now, `before` as they were; `relation` is what changed. Questions are (prompt, answers) of the world as it is now:

      wordings  what must come out now, in every wording; the first is the one to learn
      own       what else is true of the person, and is as it was
      near      the same asked of others, who are for learning beside it; far: of still others, who must be in no record
      value     what is true now: in an answer about somebody else it has bled"""

    def __init__(self, before, source, relation, near, far):
        self.before, self.source, self.relation = before, source, relation
        self.person, self.value = copy.copy(before), getattr(source, relation)
        setattr(self.person, relation, self.value)
        self.wordings = ask(self.person, relation)
        self.own = [q for r in RELATIONS if r != relation and ask(before, r) == ask(self.person, r) for q in ask(before, r)]
        self.near, self.far = ([q for p in people for q in ask(p, relation)] for people in (near, far))

    @property
    def record(self):
        """The one to learn."""
        prompt, answers = self.wordings[0]
        return {"prompt": prompt, "completion": answers[0]}


def correction(dice, relations=MAY_CHANGE, n_near=5, n_far=5):
    """A person gets what is somebody else's. Neither of them, nor the person's friend, is among those that stay."""
    relation = dice.pick(relations)
    person, source = dice.sample(PEOPLE, 2)
    while getattr(source, relation) == getattr(person, relation) or source is person.friend:
        source = dice.pick(PEOPLE)
    others = dice.sample([p for p in PEOPLE if p not in (person, source, person.friend)], n_near + n_far)
    return Correction(person, source, relation, others[:n_near], others[n_near:])


def is_right(answer, answers):
    return answer.strip() in answers


__all__ = ["ask", "facts", "hop", "hops", "correction", "Correction", "is_right", "RELATIONS", "MAY_CHANGE", "PEOPLE", "BY_NAME"]
