# SPDX-License-Identifier: Apache-2.0
"""A small grammar: "[a|b [c|d]]" is a choice, "{he}" a slot; and random numbers that are the same in every version of Python."""
import random


class Dice:
    """A generator of its own for every purpose: Dice(seed, "stories")."""

    def __init__(self, *what):
        self.random = random.Random(" ".join(str(w) for w in what)).random  # of a generator, this method alone is promised never to change

    def below(self, n):
        return int(self.random() * n)

    def pick(self, items):
        return items[int(self.random() * len(items))]

    def chance(self, p):
        return self.random() < p

    def sample(self, items, n):
        """n different ones, in random order."""
        items = list(items)
        for i in range(n):
            k = i + self.below(len(items) - i)
            items[i], items[k] = items[k], items[i]
        return items[:n]


_parsed = {}


def _parse(text, at=0, depth=0):
    """A list of strings and of choices, which are lists of such lists. Returns it and where it ends."""
    choices, here, start = [], [], at
    while at < len(text) and text[at] != "]":
        if text[at] == "[":
            here.append(text[start:at])
            inner, at = _parse(text, at + 1, depth + 1)
            here.append(inner)
            start = at
        elif text[at] == "|" and depth:
            here.append(text[start:at])
            choices.append(here)
            here, at = [], at + 1
            start = at
        else:
            at += 1
    here.append(text[start:at])
    choices.append(here)
    return (choices, at + 1) if depth else (here, at)


def _grow(tree, dice, out):
    for part in tree:
        if isinstance(part, str):
            out.append(part)
        else:
            _grow(dice.pick(part), dice, out)


def say(text, dice, slots):
    """One sentence of the grammar `text`, with its slots filled."""
    tree = _parsed.get(text)
    if tree is None:
        tree = _parsed[text] = _parse(text)[0]
    out = []
    _grow(tree, dice, out)
    return "".join(out).format_map(slots)


def capital(text):
    return text[:1].upper() + text[1:]


def _all(tree):
    """Every text of a list of strings and choices."""
    texts = [""]
    for part in tree:
        said = [part] if isinstance(part, str) else [text for one in part for text in _all(one)]
        texts = [text + more for text in texts for more in said]
    return texts


def every(text, slots):
    """Every sentence that say() may make of the grammar `text`, each once, in its order."""
    return list(dict.fromkeys(one.format_map(slots) for one in _all(_parse(text)[0])))
