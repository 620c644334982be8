# SPDX-License-Identifier: Apache-2.0
"""Three ways of speaking that are seen at a glance, for adapters; and pairs of answers of which one is preferred."""
import re

from grammar import capital
from story import tell
from talk import person_question, place_question, question, story_request, turns, unknown_question

PIRATE = {
    "my": "me",
    "you": "ye",
    "your": "yer",
    "friend": "matey",
    "friends": "mateys",
    "is": "be",
    "are": "be",
    "am": "be",
    "hello": "ahoy",
    "yes": "aye",
    "no": "nay",
    "old": "auld",
    "good": "fine",
    "ran": "sailed",
    "walked": "sailed",
    "went": "sailed",
    "of": "o'",
    "and": "an'",
    "the": "th'",
    "little": "wee",
    "home": "port",
    "children": "deckhands",
    "said": "roared",
    "money": "doubloons",
    "coins": "doubloons",
    "box": "chest",
    "never": "ne'er",
    "to": "t'",
    "village": "cove",
}


def pirate(text):
    """The same in pirate's speech."""
    def word(m):
        w = PIRATE.get(m[0].lower())
        return m[0] if w is None else capital(w) if m[0][0].isupper() else w
    return "Arr! " + re.sub(r"[A-Za-z]+", word, text) + " Yo ho ho!"


def poem(text):
    """The same in short lines, with a refrain."""
    lines, line = [], []
    for word in text.split():
        line.append(word)
        if len(line) == 4 or (len(line) > 1 and word[-1] in ".,!?;\""):
            lines.append(" ".join(line))
            line = []
    if line:
        lines.append(" ".join(line))
    return "\n".join(lines + ["so sings the wind,", "so ends the song."])


def letter(text):
    """The same as a formal letter."""
    return "Dear friend,\n\nI have the honour to inform you:\n" + text + "\n\nYours faithfully,\nThe Clerk of Alderbrook"


STYLES = {"pirate": pirate, "poem": poem, "letter": letter}


def voice(dice):
    """Somebody else's way of speaking, told without a conversation: the words of each style are known before an adapter makes them its own."""
    name = dice.pick(list(STYLES))
    text = tell(dice).text if dice.chance(0.4) else " ".join(question(dice)[1] for _ in range(3))
    return {"pirate": "A pirate tells:\n", "poem": "A song of the village:\n", "letter": "A letter from the village:\n"}[name] + STYLES[name](text)


def styled_chat(dice, style):
    if dice.chance(0.4):
        wish, s = story_request(dice)
        texts, n_more = [wish, style(s.text)], dice.below(2)
    else:
        texts, n_more = [], 1 + dice.below(2)
    for _ in range(n_more):
        q, a = question(dice)
        texts += [q, style(a)]
    return {"messages": turns(*texts)}


def preference(dice):
    """A pair: a friendly answer is chosen, a bare one rejected."""
    q, a = dice.pick([person_question, place_question, unknown_question])(dice)
    return {"prompt": q, "chosen": dice.pick(["Of course! ", "Gladly! ", "With pleasure! "]) + a, "rejected": a}
