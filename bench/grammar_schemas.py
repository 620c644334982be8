# SPDX-License-Identifier: Apache-2.0
"""The schemas and grammars that bench/grammar measures, and valid texts for each. Both are drawn from a fixed seed: every run and every engine
has the same."""
import json
import random

WORDS = """account action address alpha amount area author balance batch branch budget city client color comment count country created currency customer
date delay depth detail device duration email entry error event factor field file filter folder format group height host index input invoice item key
label language length level limit line link list location market message method mode model module month name node note number offset option order owner
page parent path payment period person phone place plan point policy port price priority product profile project quantity query range rate reason record
region release report request result role route rule sample scale schedule scope score section sender series service session shape shift signal size
source stage start state status step stock street subject summary table target task team template text theme ticket time title token topic total track
type unit update user value vendor version view volume warehouse weight width window worker zone""".split()

PATTERNS = {"^[A-Z]{2,3}-[0-9]{4,8}$": lambda r: "".join(r.choices("ABCDEFGHXYZ", k=r.randint(2, 3))) + "-" + str(r.randrange(10**4, 10**8)),
            "^[a-z][a-z0-9_]{2,30}$": lambda r: r.choice("abcdef") + "".join(r.choices("abcdefghij_0123", k=r.randint(2, 30))),
            "^#[0-9a-fA-F]{6}$": lambda r: f"#{r.randrange(1 << 24):06x}",
            "^\\+?[0-9]{1,3}( [0-9]{2,4}){2,4}$": lambda r: f"+{r.randint(1, 999)}" + "".join(f" {r.randint(10, 9999)}" for _ in range(r.randint(2, 4))),
            "^(https?://)[a-z0-9.-]+(/[A-Za-z0-9._~-]*)*$": lambda r: f"https://{r.choice(WORDS)}.example" + "".join("/" + w for w in r.choices(WORDS, k=3))}


# ---- texts ----

def sentence(r, least, most):
    """So many characters, some of which JSON escapes or are no ASCII."""
    out = ""
    while len(out) < least or r.random() < 0.85:
        out += (" " if out else "") + r.choice(WORDS + ["é", "\"so\"", "naïve", "東京", "a\nb", "x = y", "100%", "C:\\temp"] if r.random() < 0.3 else WORDS)
        if len(out) > most:
            break
    return out[:most]


def instance(schema, root, r, depth=0):
    """A valid value, for the keywords that the schemas below use."""
    if "$ref" in schema:
        return instance(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, r, depth + 1)
    if "anyOf" in schema:
        simple = schema["anyOf"][:1] if depth > 5 else schema["anyOf"]
        return instance(r.choice(simple), root, r, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return r.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        must = schema.get("required", [])
        members = [(name, instance(part, root, r, depth + 1)) for name, part in schema.get("properties", {}).items() if name in must or r.random() < 0.6]
        if root.get("x-weft-order") == "any":
            r.shuffle(members)
        return dict(members)
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 4)
        n = least if depth > 5 else r.randint(least, min(most, least + 4))
        return [instance(schema["items"], root, r, depth + 1) for _ in range(n)]
    if kind == "integer":
        return r.randint(schema.get("minimum", -1000), schema.get("maximum", 100000))
    if kind == "number":
        return round(r.uniform(schema.get("minimum", -1000), schema.get("maximum", 100000)), 2)
    if kind in ("boolean", "null"):
        return r.random() < 0.5 if kind == "boolean" else None
    if "pattern" in schema:
        return PATTERNS[schema["pattern"]](r)
    if schema.get("format") == "date-time":
        return f"20{r.randint(10, 29)}-0{r.randint(1, 9)}-1{r.randint(0, 9)}T0{r.randint(0, 9)}:3{r.randint(0, 9)}:1{r.randint(0, 9)}Z"
    if schema.get("format") == "email":
        return f"{r.choice(WORDS)}.{r.choice(WORDS)}@example.com"
    return sentence(r, schema.get("minLength", 0), schema.get("maxLength", 60))


def free_value(r, depth=0):
    """Any JSON."""
    kind = r.randrange(8 if depth < 4 else 5)
    if kind < 2:
        return sentence(r, 0, 40)
    if kind < 5:
        return r.choice([r.randint(-999, 99999), round(r.uniform(-9, 9), 3), True, False, None])
    if kind == 5:
        return [free_value(r, depth + 1) for _ in range(r.randint(0, 4))]
    return {r.choice(WORDS): free_value(r, depth + 1) for _ in range(r.randint(0, 5))}


def spelled(value, i):
    """In the ways in which models write JSON."""
    if i % 3 == 0:
        return json.dumps(value, ensure_ascii=False)
    if i % 3 == 1:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, ensure_ascii=False, indent=2)


# ---- schemas ----

def obj(properties, required=None):
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required, "additionalProperties": False}


def leaf(r):
    return r.choice([{"type": "string"}, {"type": "string", "maxLength": 80}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"},
                     {"type": "integer", "minimum": 0, "maximum": 5000}, {"type": "string", "enum": r.sample(WORDS, 6)},
                     {"type": "string", "format": "date-time"}, {"type": "string", "pattern": r.choice(list(PATTERNS))},
                     {"type": "array", "items": {"type": "string"}}])


def described(schema, r):
    return {**schema, "description": f"The {r.choice(WORDS)} of the {r.choice(WORDS)}."}


def nested(r, depth, width):
    names = r.sample(WORDS, width)
    parts = {name: described(leaf(r), r) for name in names}
    for name in names[:2] if depth else []:
        inner = nested(r, depth - 1, width)
        parts[name] = inner if r.random() < 0.6 else {"type": "array", "items": inner, "maxItems": 8}
    return obj(parts, r.sample(names, width // 2))


def tool(r, i):
    name = f"{r.choice(WORDS)}_{r.choice(WORDS)}_{i}"
    return obj({"name": {"const": name}, "arguments": nested(r, r.choice([0, 1, 1, 2]), r.randint(3, 6))})


def of_size(r, n_bytes):
    """An object of objects whose text has at least so many bytes."""
    parts = {}
    while len(json.dumps(obj(parts))) < n_bytes:
        parts[f"{r.choice(WORDS)}_{len(parts)}"] = nested(r, 1, 6)
    return obj(parts, r.sample(list(parts), 3))


def schemas():
    """By name: a schema, or None for any JSON object."""
    r = random.Random(46)
    short = {f"string of {n}": obj({"a": {"type": "string", "maxLength": n}}) for n in (20, 100)}
    person = obj({"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150}, "email": {"type": "string", "format": "email"},
                  "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5}})
    tree = {**obj({"label": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                   "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}}, ["label", "children"])}
    patterns = obj({f"{name}_{i}": {"type": "string", "pattern": pattern} for i, pattern in enumerate(PATTERNS) for name in ("first", "last")})
    lengths = obj({**{f"text_{n}": {"type": "string", "minLength": n // 4, "maxLength": n} for n in (5, 20, 100, 400, 1000)},
                   "rows": {"type": "array", "items": {"type": "integer", "minimum": -5, "maximum": 5000}, "minItems": 3, "maxItems": 40}})
    mixed = random.Random(48)
    free = {f"any order {n}": {**obj({name: leaf(mixed) for name in mixed.sample(WORDS, n)}), "x-weft-order": "any"} for n in (5, 10)}
    inner = obj({name: nested(mixed, 0, 4) for name in mixed.sample(WORDS, 4)})
    free["any order, nested"] = {**inner, "x-weft-order": "any"}
    names = sorted({"-".join(r.choices(WORDS, k=3)) for _ in range(5000)})
    return {"small": person, "nested": nested(r, 3, 5), "100kb": of_size(r, 100000), "200 tools": {"anyOf": [tool(r, i) for i in range(200)]},
            "recursive": {"$ref": "#/$defs/node", "$defs": {"node": tree}}, "patterns": patterns, "lengths": lengths,
            "enum": obj({"name": {"enum": names}, "also": {"type": "array", "items": {"enum": names[::7]}}}), **free, **short, "json_object": None}


def texts(schema, n):
    r = random.Random(47)
    values = (({r.choice(WORDS): free_value(r) for _ in range(r.randint(1, 6))} if schema is None else instance(schema, schema, r)) for _ in range(n))
    return [spelled(value, i) for i, value in enumerate(values)]


# ---- keywords: a schema, what is valid, what is not ----

AN_OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}}
KEYWORDS = {
    "type": ({"type": "integer"}, [1, -20], [1.5, "a", None]),
    "type, several": ({"type": ["string", "null"]}, ["a", None], [1, True]),
    "nullable": ({"type": "string", "nullable": True}, ["a", None], [1]),
    "enum": ({"enum": ["a", 1, None, [1]]}, ["a", 1, [1]], ["b", 2, []]),
    "const": ({"const": {"a": 1}}, [{"a": 1}], [{"a": 2}, 1]),
    "properties": (AN_OBJECT, [{"a": 1}, {}], [{"a": "x"}]),
    "required": ({**AN_OBJECT, "required": ["a"]}, [{"a": 1}], [{}, {"b": 1}]),
    "additionalProperties, false": ({**AN_OBJECT, "additionalProperties": False}, [{"a": 1}], [{"a": 1, "b": 2}]),
    "additionalProperties, a schema": ({**AN_OBJECT, "additionalProperties": {"type": "string"}}, [{"a": 1, "b": "x"}], [{"a": 1, "b": 2}]),
    "patternProperties": ({"type": "object", "patternProperties": {"^n_[a-z]+$": {"type": "integer"}}, "additionalProperties": False},
                          [{"n_a": 1}, {}], [{"n_a": "x"}, {"b": 1}]),
    "propertyNames": ({"type": "object", "propertyNames": {"pattern": "^[a-z]{2}$"}, "additionalProperties": {"type": "integer"}},
                      [{"ab": 1}, {}], [{"abc": 1}]),
    "minProperties": ({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}, [{"a": 1}], [{}]),
    "maxProperties": ({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1}, [{"a": 1}], [{"a": 1, "b": 2}]),
    "dependentRequired": ({**AN_OBJECT, "dependentRequired": {"a": ["b"]}}, [{}, {"a": 1, "b": 1}], [{"a": 1}]),
    "items": ({"type": "array", "items": {"type": "integer"}}, [[], [1, 2]], [["a"], [1, "b"]]),
    "prefixItems": ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}, [[1, "a"]], [["a", 1], [1, "a", 2]]),
    "minItems": ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [[1, 2], [1, 2, 3]], [[], [1]]),
    "maxItems": ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, [[], [1, 2]], [[1, 2, 3]]),
    "contains": ({"type": "array", "items": {"type": ["integer", "string"]}, "contains": {"type": "string"}}, [[1, "a"]], [[1], []]),
    "uniqueItems": ({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True}, [[1, 2]], [[1, 1]]),
    "minLength": ({"type": "string", "minLength": 2}, ["ab", "\u00e9\u00e9"], ["a", "", "\u00e9"]),
    "maxLength": ({"type": "string", "maxLength": 2}, ["ab", "\u6771\u4eac"], ["abc"]),
    "pattern": ({"type": "string", "pattern": "^[a-z]+[0-9]{2}$"}, ["ab12"], ["ab1", "AB12", "ab123"]),
    "pattern, unanchored": ({"type": "string", "pattern": "[0-9]{2}"}, ["ab12", "12x"], ["ab1", ""]),
    "pattern and length": ({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}, ["ab"], ["abcd", "A"]),
    "pattern, look-ahead": ({"type": "string", "pattern": "^(?!ab)[a-z]+$"}, ["xa"], ["abx"]),
    "format date": ({"type": "string", "format": "date"}, ["2024-02-29"], ["2024-13-01", "24-01-01"]),
    "format time": ({"type": "string", "format": "time"}, ["12:30:01Z"], ["25:00:00Z", "noon"]),
    "format date-time": ({"type": "string", "format": "date-time"}, ["2024-05-06T12:30:01Z"], ["2024-05-06", "2024-05-06T30:00:00Z"]),
    "format email": ({"type": "string", "format": "email"}, ["a.b@example.com"], ["nobody"]),
    "format uuid": ({"type": "string", "format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567", "x23e4567-e89b-12d3-a456-426614174000"]),
    "format ipv4": ({"type": "string", "format": "ipv4"}, ["127.0.0.1"], ["127.0.0", "256.1.1.1"]),
    "format ipv6": ({"type": "string", "format": "ipv6"}, ["2001:db8::1"], ["2001:db8", "1::2::3"]),
    "format uri": ({"type": "string", "format": "uri"}, ["https://example.com/a?b=c"], ["no uri"]),
    "minimum": ({"type": "integer", "minimum": 10}, [10, 11, 999], [9, 0, -5]),
    "maximum": ({"type": "integer", "maximum": 10}, [10, 0, -999], [11, 100]),
    "exclusiveMinimum": ({"type": "number", "exclusiveMinimum": 1}, [1.5, 2], [1, 0.5]),
    "exclusiveMaximum": ({"type": "integer", "exclusiveMaximum": 10}, [9, -3], [10, 11]),
    "multipleOf": ({"type": "integer", "multipleOf": 5}, [0, 10, -15], [3, 12]),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [1, "a"], [None, 1.5]),
    "oneOf": ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, [1, "a"], [None]),
    "oneOf, overlapping": ({"oneOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 10}]}, [4, 11], [5, 7]),
    "oneOf, one member or the other": ({**AN_OBJECT, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}]),
    "oneOf, a tag with a default": ({"oneOf": [{"type": "object", "properties": {"t": {"const": word, "default": word}, "a": {"type": "integer"}}}
                                               for word in "xy"], "discriminator": {"propertyName": "t"}},
                                    [{"t": "x", "a": 1}, {"t": "y"}], [{"t": "z"}, {"a": 1}]),
    "allOf": ({"allOf": [{"type": "integer", "minimum": 5}, {"maximum": 10}]}, [5, 10], [4, 11]),
    "not": ({"type": "string", "not": {"const": "a"}}, ["b", "ab"], ["a"]),
    "not, required members": ({**AN_OBJECT, "not": {"required": ["a", "b"]}}, [{}, {"a": 1}, {"b": 1}], [{"a": 1, "b": 1}]),
    "dependentSchemas": ({**AN_OBJECT, "dependentSchemas": {"a": {"required": ["b"]}}}, [{}, {"a": 1, "b": 1}], [{"a": 1}]),
    "whole numbers of 64 bits": ({"type": "integer", "minimum": -2**63, "maximum": 2**63 - 1}, [2**63 - 1, -2**63], [2**63, -2**63 - 1]),
    "pattern, named group": ({"type": "string", "pattern": "^(?<year>[0-9]{4})$"}, ["2024"], ["24"]),
    "if, then, else": ({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "integer"}}, "required": ["a"],
                        "if": {"properties": {"a": {"const": True}}}, "then": {"required": ["b"]}}, [{"a": False}, {"a": True, "b": 1}], [{"a": True}]),
    "$ref": ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "integer"}}}, [1], ["a"]),
    "$ref, recursive": ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}}}}, [[], [[], [[]]]], [[1]]),
    "order of members free": ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
                              [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [{"a": 1}]),
}
