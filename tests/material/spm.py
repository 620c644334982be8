# SPDX-License-Identifier: Apache-2.0
"""SentencePiece's pairs in Python: a small vocabulary learned from a text, and the ids of a text by their scores. Independent of the
engine, and as slow as it is plain."""
import collections

UNKNOWN, BOS, EOS, BYTES = 0, 1, 2, 3  # the token of a byte b is BYTES + b
SPACE = "\u2581"
TYPES = {"normal": 1, "unknown": 2, "control": 3, "byte": 6}


def words(text):
    """Each with the blank before it: no piece reaches over one."""
    spelled = SPACE + text.replace(" ", SPACE)
    return [SPACE + w for w in spelled.split(SPACE)[1:]]


def whole(piece):
    """Letters alone, or none: a word is the same tokens whatever stands behind it."""
    letters = [c.isalpha() for c in piece.replace(SPACE, "")]
    return all(letters) or not any(letters)


def learn(text, size):
    """[(text, score, type)]: the three special tokens, bytes, what the most frequent pairs make, best first, and characters."""
    count = collections.Counter(words(text.replace("\n", " ")))
    chars = sorted({c for w in count for c in w})
    split = {w: list(w) for w in count}
    made = []
    while BYTES + 256 + len(chars) + len(made) < size:
        pairs = collections.Counter()
        for w, parts in split.items():
            for pair in zip(parts, parts[1:]):
                if whole("".join(pair)):
                    pairs[pair] += count[w]
        best = min(pairs, key=lambda p: (-pairs[p], p))
        made.append("".join(best))
        for w, parts in split.items():
            i = 0
            while i + 1 < len(parts):
                if (parts[i], parts[i + 1]) == best:
                    parts[i:i + 2] = [made[-1]]
                i += 1
    pieces = [("<unk>", 0.0, TYPES["unknown"]), ("<s>", 0.0, TYPES["control"]), ("</s>", 0.0, TYPES["control"])]
    pieces += [(f"<0x{b:02X}>", 0.0, TYPES["byte"]) for b in range(256)]
    return pieces + [(p, -float(i), TYPES["normal"]) for i, p in enumerate(made + chars)]


class Vocabulary:
    def __init__(self, texts, scores):
        self.id = {t: i for i, t in enumerate(texts) if i >= BYTES + 256}
        self.score, self.known = scores, {}

    def word(self, w):
        """Two neighbours that make a piece become it, the best piece first and of equal ones the first; what is left and no piece is bytes."""
        parts = list(w)
        while True:
            joined = [(-self.score[self.id[a + b]], i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in self.id]
            if not joined:
                break
            at = min(joined)[1]
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        return [i for p in parts for i in ([self.id[p]] if p in self.id else [BYTES + b for b in p.encode()])]

    def ids(self, text):
        """Without BOS."""
        out = []
        for w in words(text) if text else []:
            if w not in self.known:
                self.known[w] = self.word(w)
            out += self.known[w]
        return out
