# SPDX-License-Identifier: Apache-2.0
"""Random JSON Schemas whose values are of bounded length, and a regular expression of each: of its values as Weft writes them, members in the
schema's order, with little white space. What numbers with a fraction may be is only said roughly there."""
import json
import re

WS, GAP = r"(?: |\n(?: {0,32}|\t{1,32}))?", " ?"  # the latter behind a colon
CHAR = r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})'
NAMES = ["name", "age", "a", "b/c", "tags", "n\u00e9", "kind", "x y", "id", "list"]
DIGITS = "[0-9]"
PATTERNS = [("^[A-Z][a-z]{1,6}$", '"[A-Z][a-z]{1,6}"'), ("^\\d{3}-\\d{2,4}$", '"[0-9]{3}-[0-9]{2,4}"'), ("^(yes|no|per haps)$", '"(?:yes|no|per haps)"'),
            ('^["\\\\]x?$', r'"\\["\\]x?"')]
TIME = r"[0-9]{2}(?::[0-9]{2}){2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
UUID = '"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"'
PRINTED = r'"(?:[!#-\[\]-~]|\\["\\])+"'  # no space
FORMATS = [("date", r'"[0-9]{4}-[0-9]{2}-[0-9]{2}"'), ("time", f'"{TIME}"'), ("date-time", f'"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{TIME}"'),
           ("ipv4", r'"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"'), ("ipv6", '"[0-9A-Fa-f:]{2,39}"'), ("uuid", UUID), ("uuid4", UUID),
           ("email", r'"[A-Za-z0-9_+.-]+@[A-Za-z0-9.-]+"'), ("hostname", r'"[A-Za-z0-9.-]{1,253}"'), ("duration", '"P[0-9YMWDTHS]+"'),
           ("regex", r'"(?:[ !#-\[\]-~]|\\["\\])+"')]
MAYBE = PRINTED.replace('+"', '*"')
BOUNDED = [("uri", 2083, PRINTED), ("uri", 80, PRINTED), ("uri-reference", 60, MAYBE), ("uri-template", 300, MAYBE),
           ("json-pointer", 40, f'"{CHAR}*"'), ("regex", 30, r'"(?:[ !#-\[\]-~]|\\["\\])+"'), ("email", 30, r'"[A-Za-z0-9_+.-]+@[A-Za-z0-9.-]+"')]
NODE = {"type": "object", "properties": {"v": {"type": "boolean"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        "required": ["v", "next"], "additionalProperties": False}


def quoted(name):
    return re.escape(json.dumps(name, ensure_ascii=False))


def either(parts):
    return "(?:" + "|".join(parts) + ")"


def constant(value):
    """A value with its white space."""
    if isinstance(value, list):
        return r"\[" + WS + ("," + WS).join(constant(v) for v in value) + (WS if value else "") + r"\]"
    return re.escape(json.dumps(value, ensure_ascii=False))


def members(parts):
    """Members in order, [(expression, required)], behind each other with commas between those that are there."""
    rest, first_rest = "", ""  # of those from here on: behind another, and as the first
    for text, required in reversed(parts):
        behind = "," + WS + text + rest
        first = text + rest
        first_rest = first if required else either([first, first_rest]) if first_rest else f"(?:{first})?"
        rest = behind if required else either([behind, rest]) if rest else f"(?:{behind})?"
    return first_rest


def numbers(r):
    kind = r.randrange(6)
    low = r.randrange(-60, 60)
    high = low + r.randrange(1, 90)
    if kind == 0:
        return {"type": "integer", "minimum": low, "maximum": high}, either(map(str, range(low, high + 1)))
    if kind == 1:
        m = r.choice([2, 3, 5, 7])
        schema = {"type": "integer", "multipleOf": m, "minimum": low, "maximum": high + 10}
        return schema, either(str(v) for v in range(low, high + 11) if v % m == 0)
    if kind == 2:
        m = r.choice([0.5, 0.25, 0.1, 0.01])
        return {"type": "number", "multipleOf": m, "minimum": 0, "maximum": 4}, r"[0-9]+(?:\.[0-9]{1,2})?"
    if kind == 3:
        schema = {"allOf": [{"type": "integer", "minimum": low}, {"maximum": high}, {"exclusiveMaximum": high + 0.5}]}
        return schema, either(map(str, range(low, high + 1)))
    a, b = low + r.choice([0.5, 0.25, 0.75, 0.1]), high + r.choice([0.5, 0.001, 0])
    return {"type": "number", r.choice(["minimum", "exclusiveMinimum"]): a, r.choice(["maximum", "exclusiveMaximum"]): b}, r"-?[0-9]+(?:\.[0-9]{1,15})?"


def strings(r):
    kind = r.randrange(7)
    if kind == 5:
        name, most, text = r.choice(BOUNDED)
        return {"type": "string", "format": name, "maxLength": most}, text
    if kind == 0:
        low = r.randrange(3)
        high = low + r.randrange(1, 9)
        return {"type": "string", "minLength": low, "maxLength": high}, f'"{CHAR}{{{low},{high}}}"'
    if kind == 1:
        pattern, text = r.choice(PATTERNS)
        return {"type": "string", "pattern": pattern}, text
    if kind in (2, 6):
        name, text = r.choice(FORMATS)
        return {"type": "string", "format": name}, text
    if kind == 3:
        return {"type": "string", "pattern": "^[a-c]+$", "maxLength": 5, "minLength": 2}, '"[a-c]{2,5}"'
    return {"allOf": [{"type": "string", "pattern": "^[a-f]{1,5}$"}, {"pattern": "[c-z]$"}]}, '"[a-f]{0,4}[c-f]"'


def values(r):
    pool = ["red", "", 'a"b', "\u4e2d", 1, -7, None, True, [1, "x"], [], 2.5]
    listed = r.sample(pool, r.randrange(1, 5))
    if r.random() < 0.5:
        return {"enum": listed}, either(constant(v) for v in listed)
    if r.random() < 0.5:
        texts = [v for v in pool if isinstance(v, str)]
        return {"enum": listed + texts, "type": "string", "maxLength": 2}, either(constant(v) for v in texts if len(v) <= 2)
    return {"const": listed[0]}, constant(listed[0])


def arrays(r, depth):
    item, text = schema(r, depth + 1)
    low = r.randrange(3)
    high = low + r.randrange(3)
    if high == 0 or r.random() < 0.2:
        first, other = schema(r, depth + 1), (item, text)
        whole = r"\[" + WS + first[1] + "(?:," + WS + other[1] + ")?" + WS + r"\]"
        return {"type": "array", "prefixItems": [first[0], item], "items": False, "minItems": 1}, whole
    inside = text + f"(?:,{WS}{text}){{{max(low, 1) - 1},{high - 1}}}" + WS
    return {"type": "array", "items": item, "minItems": low, "maxItems": high}, r"\[" + WS + (inside if low else f"(?:{inside})?") + r"\]"


def objects(r, depth):
    kind = r.random()
    if kind < 0.12:
        value, text = schema(r, depth + 1)
        one = '"[a-z]{1,4}":' + GAP + text
        return ({"type": "object", "patternProperties": {"^[a-z]{1,4}$": value}, "additionalProperties": False, "minProperties": 1, "maxProperties": 2},
                r"\{" + WS + one + f"(?:,{WS}{one})?" + WS + r"\}")
    if kind < 0.2:
        value, text = schema(r, depth + 1)
        one = either(map(quoted, ("p", "qq"))) + ":" + GAP + text
        return ({"type": "object", "propertyNames": {"enum": ["p", "qq"]}, "additionalProperties": value, "maxProperties": 2},
                r"\{" + WS + f"(?:{one}(?:,{WS}{one})?{WS})?" + r"\}")
    names = r.sample(NAMES, r.randrange(1, 5))
    required = [n for n in names if r.random() < 0.6]
    made = {n: schema(r, depth + 1) for n in names}
    out = {"type": "object", "properties": {n: made[n][0] for n in names}, "required": required, "additionalProperties": False}
    inside = members([(quoted(n) + ":" + GAP + made[n][1], n in required) for n in names])
    if not required and r.random() < 0.5:
        out["minProperties"] = 1
        return out, r"\{" + WS + f"(?=\")(?:{inside}){WS}" + r"\}"
    return out, r"\{" + WS + (f"(?:{inside}){WS}" if required else f"(?:{inside}{WS})?") + r"\}"


def tagged(r, depth):
    one, two = schema(r, depth + 1), schema(r, depth + 1)
    def case(word, value):
        return {"type": "object", "properties": {"kind": {"const": word}, "v": value}, "required": ["kind", "v"], "additionalProperties": False}
    text = either(r"\{" + WS + f'"kind":{GAP}"{word}",{WS}"v":{GAP}{value}{WS}' + r"\}" for word, value in (("x", one[1]), ("y", two[1])))
    return {"oneOf": [case("x", one[0]), case("y", two[0])]}, text


# A list of nodes, each in the one before: NODE. It stands once in an expression.
CHAIN = r"(?P<node>\{" + WS + f'"v":{GAP}(?:true|false),{WS}"next":{GAP}(?:null|(?&node)){WS}' + r"\})"


def document(r):
    """A schema and its expression; some of its values have definitions that refer to each other, or to themselves."""
    if r.random() < 0.75:
        return schema(r)
    one, two = schema(r, 1), schema(r, 2)
    defs = {"one": one[0], "two": {"type": "array", "items": {"$ref": "#/$defs/two items"}, "minItems": 1, "maxItems": 2}, "two items": two[0], "node": NODE}
    lists = r"\[" + WS + two[1] + f"(?:,{WS}{two[1]})?{WS}" + r"\]"
    node = r.choice(["$ref", "anchor"])
    names = {"a": ({"$ref": "#/$defs/one"}, one[1]), "b": ({"$ref": "#/$defs/two"}, lists), "n": ({"$ref": "#/$defs/node"}, CHAIN)}
    if node == "anchor":
        defs["one"] = {**one[0], "$anchor": "first"}
        names["a"] = ({"$ref": "#first"}, one[1])
    chosen = r.sample(sorted(names), r.randrange(1, 4))
    inside = members([(quoted(n) + ":" + GAP + names[n][1], True) for n in chosen])
    return ({"type": "object", "properties": {n: names[n][0] for n in chosen}, "required": chosen, "additionalProperties": False, "$defs": defs},
            r"\{" + WS + f"(?:{inside}){WS}" + r"\}")


def schema(r, depth=0):
    """A schema and its expression."""
    if depth < 3 and r.random() < (0.85 if depth == 0 else 0.35):
        return r.choice([arrays, objects, objects, tagged])(r, depth)
    kind = r.randrange(8)
    if kind < 2:
        return numbers(r)
    if kind < 4:
        return strings(r)
    if kind == 4:
        return values(r)
    if kind == 5:
        return {"type": ["boolean", "null"]}, "(?:true|false|null)"
    if kind == 6:
        a, b = numbers(r), strings(r)
        return {"anyOf": [a[0], b[0]]}, either([a[1], b[1]])
    a = numbers(r)
    return {"type": ["number", "null"], "anyOf": [a[0], {"type": "null"}]}, either([a[1], "null"])
