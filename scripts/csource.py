# SPDX-License-Identifier: Apache-2.0
"""What check-names and check-limits read of C: tokens, and the names that a file declares at its top level. No preprocessor: macros that make
functions are seen as what they are written as."""
import os
import re

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|\\\n)|(?P<line>\n)|(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)|(?P<text>"(?:[^"\\\n]|\\.|\\\n)*"|'(?:[^'\\\n]|\\.)*')
                       |(?P<word>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<mark>.)""",
    re.X | re.S,
)
DEFINE = re.compile(r"\s*#\s*define\s+(\w+)")
NOT_NAMES = {
    "if",
    "for",
    "while",
    "switch",
    "return",
    "sizeof",
    "__attribute__",
    "_Static_assert",
    "static_assert",
    "_Alignas",
    "__declspec",
    "defined",
    "typeof",
    "__typeof__",
}


class Token:
    __slots__ = ("text", "line", "kind")

    def __init__(self, text, line, kind):
        self.text, self.line, self.kind = text, line, kind


def tokens(text):
    """The tokens outside of comments and of preprocessor lines, and the names that #define gives: [(name, line)]."""
    found, macros, line, at, fresh = [], [], 1, 0, True
    while at < len(text):
        if fresh and (match := re.compile(r"[ \t]*#(?:[^\n\\/]|\\\n|\\.|/\*.*?\*/|/)*", re.S).match(text, at)):
            if name := DEFINE.match(match.group()):
                macros.append((name.group(1), line))
        else:
            match = TOKEN.match(text, at)
            fresh = match.lastgroup == "line" or (fresh and match.lastgroup in ("space", "comment"))
            if match.lastgroup in ("word", "mark", "number", "text"):
                found.append(Token(match.group(), line, match.lastgroup))
        line += match.group().count("\n")
        at = match.end()
    return found, macros


class Function:
    """A function as it is declared or defined; `end` is the line of its last brace, 0 for a declaration."""

    def __init__(self, name, line, is_static, n_params, end, first):
        self.name, self.line, self.is_static, self.n_params, self.end, self.first = name, line, is_static, n_params, end, first


class Source:
    """functions: [Function]; types (bodies: those of struct, union and enum), constants and macros: [(name, line)]."""

    def __init__(self, text):
        self.functions, self.types, self.bodies, self.constants = [], [], [], []
        found, self.macros = tokens(text)
        for piece in pieces(found):
            self.read(piece)

    def read(self, piece):
        words = [t.text for t in piece]
        self.read_types(piece)
        if words[0] == "typedef":
            self.read_typedef(piece)
            return
        depth, name = 0, None
        for i, t in enumerate(piece):
            if depth == 0 and t.text in ("=", "{"):
                break
            if depth == 0 and t.text == "(" and i and piece[i - 1].kind == "word" and piece[i - 1].text not in NOT_NAMES and i > 1 and (
                    piece[i - 2].kind == "word" or piece[i - 2].text in "*)"):
                name = i - 1
                break
            depth += {"(": 1, ")": -1}.get(t.text, 0)
        if name is None:
            return
        close, n = closing(piece, name + 1), 0
        inner, depth = piece[name + 2:close], 0
        for t in inner:
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(t.text, 0)
            n += t.text == "," and depth == 0
        if inner and [t.text for t in inner] != ["void"]:
            n += 1
        end = piece[-1].line if piece[-1].text == "}" else 0
        self.functions.append(Function(piece[name].text, piece[name].line, "static" in words[:name], n, end, piece[0].line))

    def read_types(self, piece):
        """struct, union and enum with a body, wherever they stand but in functions' bodies."""
        for i, t in enumerate(piece[:-2]):
            if t.text in ("struct", "union", "enum") and piece[i + 1].kind == "word" and piece[i + 2].text == "{":
                self.types.append((piece[i + 1].text, piece[i + 1].line))
                self.bodies.append(self.types[-1])
            if t.text == "enum":
                at = i + 1 + (piece[i + 1].kind == "word")
                if piece[at].text == "{":
                    self.read_constants(piece[at + 1:closing(piece, at)])

    def read_constants(self, inner):
        depth, start = 0, True
        for t in inner:
            if start and depth == 0 and t.kind == "word":
                self.constants.append((t.text, t.line))
            start = t.text == "," and depth == 0
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(t.text, 0)

    def read_typedef(self, piece):
        depth, names = 0, []
        for i, t in enumerate(piece):
            if t.text == "{":
                depth += 1
            elif t.text == "}":
                depth -= 1
            elif depth == 0 and t.kind == "word" and piece[i + 1].text in (";", ",", "[") and i > 1:
                names.append(t)
            elif depth == 0 and t.kind == "word" and piece[i + 1].text == "__attribute__" and i > 1:
                names.append(t)
                break
            elif depth == 0 and t.kind == "word" and i > 2 and [piece[i - 2].text, piece[i - 1].text] == ["(", "*"]:
                names = [t]
                break
            elif depth == 0 and t.kind == "word" and i > 1 and piece[i + 1].text == "(" and piece[i + 2].text != "*":  # of a function
                names = [t]
                break
        if names:
            self.types.append((names[0].text, names[0].line))


def closing(piece, at):
    """Where what opens at `at` closes."""
    depth = 0
    for i in range(at, len(piece)):
        if piece[i].text in ("(", "{", "["):
            depth += 1
        elif piece[i].text in (")", "}", "]"):
            depth -= 1
            if depth == 0:
                return i
    return len(piece) - 1


def pieces(found):
    """The declarations and definitions of the top level, each as its tokens."""
    i, piece = 0, []
    while i < len(found):
        t = found[i]
        if t.text == "extern" and i + 2 < len(found) and found[i + 1].text == '"C"' and found[i + 2].text == "{":
            i += 3
            continue
        if t.text in ("{", "(", "["):
            end = closing(found, i)
            if t.text == "{" and piece and is_body(piece):
                yield piece + [t, found[end]]
                piece = []
            else:
                piece += found[i:end + 1]
            i = end + 1
            continue
        if t.text == "}":  # of extern "C"
            i += 1
            continue
        piece.append(t)
        if t.text == ";":
            if len(piece) > 1:
                yield piece
            piece = []
        i += 1


def is_body(piece):
    """Whether a brace that follows opens a function: after a list of parameters, and no initializer."""
    last = piece[-1].text
    return (
        "=" not in [t.text for t in piece]
        and piece[0].text != "typedef"
        and (last == ")" or (last not in ("struct", "union", "enum") and ")" in [t.text for t in piece]))
    )


def files(root, places, ending=r"\.[ch]$"):
    """The files under the places, relative to root, sorted."""
    for place in places:
        for folder, folders, names in os.walk(os.path.join(root, place)):
            folders.sort()
            folders[:] = [name for name in folders if not name.startswith((".", "__", "build"))]
            for name in sorted(names):
                if re.search(ending, name):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()
