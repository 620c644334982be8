# SPDX-License-Identifier: Apache-2.0
"""Random JSON Schemas of what excludes and depends: not, if, then, else, oneOf with and without a discriminator, dependentRequired,
dependentSchemas, whole numbers of 64 bits, named groups; and values that try them."""
import json

NAMES = ["a", "b", "c", "kind"]
WORDS = ["x", "y", "zz", "x.y", ""]
PATTERNS = ["^x", "y$", "^(?<first>x|y)+$", "^[^]$", "^[a-c]{2}$", "z", "^\\u{78}\\.", "^(?!x)", "\\cA|x"]
BOUNDS = [0, 1, 5, -3, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -2**63, 10**18, 10**18 - 1, 2**62 + 1]


def leaf(r):
    kind = r.randrange(10)
    if kind == 0:
        return {"const": r.choice(WORDS + [1, 2, None, True])}
    if kind == 1:
        return {"enum": r.sample(WORDS + [0, 1, 3, False, None], r.randrange(1, 4))}
    if kind == 2:
        return {"type": "integer", r.choice(["minimum", "exclusiveMinimum"]): r.choice(BOUNDS)}
    if kind == 3:
        low, high = sorted(r.sample(BOUNDS, 2))
        return {"type": "integer", "minimum": low, r.choice(["maximum", "exclusiveMaximum"]): high}
    if kind == 4:
        return {"type": "string", "pattern": r.choice(PATTERNS), "maxLength": r.randrange(1, 6)}
    if kind == 5:
        return {"type": r.choice(["string", "boolean", "null", "integer", "number"])}
    if kind == 6:
        return {"type": r.sample(["string", "boolean", "null", "array"], 2)}
    if kind == 7:
        return {"type": "string", "minLength": r.randrange(3), "maxLength": r.randrange(2, 6)}
    if kind == 8:
        return {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": r.randrange(2), "maxItems": r.randrange(1, 4)}
    return {"type": "number", "minimum": r.choice([-2, 0.5]), "exclusiveMaximum": r.choice([3, 7.25])}


def condition(r, depth=0):
    """What an object, or any value, may be asked: of the kind that can be put the other way round."""
    kind = r.randrange(9)
    names = r.sample(NAMES, r.randrange(1, 3))
    if kind < 3:
        return {"required": names}
    if kind == 3:
        return {"properties": {n: leaf(r) for n in names}, "required": names}
    if kind == 4:
        return {"properties": {n: leaf(r) for n in names}}
    if kind == 5 and depth < 2:
        return {"not": condition(r, depth + 1)}
    if kind == 6 and depth < 2:
        return {r.choice(["anyOf", "allOf"]): [condition(r, depth + 1), condition(r, depth + 1)]}
    if kind == 7:
        return {r.choice(["minProperties", "maxProperties"]): r.randrange(1, 3)}
    return {"properties": {"kind": {"const": r.choice(WORDS)}}, "required": ["kind"]}


def members(r, most=4):
    names = r.sample(NAMES, r.randrange(1, most + 1))
    out = {"type": "object", "properties": {n: leaf(r) for n in names}}
    if r.random() < 0.5:
        out["required"] = r.sample(names, r.randrange(len(names) + 1))
    if r.random() < 0.6:
        out["additionalProperties"] = False
    return out


def tagged(r, tag, word, optional):
    out = members(r, 3)
    value = r.choice([{"const": word}, {"enum": [word]}, {"$ref": "#/$defs/" + word}])
    out["properties"] = {tag: {**value, "default": word} if "$ref" not in value else value, **{n: s for n, s in out["properties"].items() if n != tag}}
    out["required"] = [n for n in out.get("required", []) if n != tag] + [tag] * (not optional)
    return out


def document(r):
    defs = {w: {"const": w, "type": "string"} for w in ("cat", "dog", "eel", "fish")}
    kind = r.randrange(9)
    if kind == 0:
        made = {**members(r), "not": condition(r)}
    elif kind == 1:
        made = {**members(r), "if": condition(r), "then": r.choice([condition(r), members(r), True]), "else": r.choice([condition(r), True])}
        made.pop(r.choice(["then", "else", "type"]), None)
    elif kind == 2:
        made = {**members(r), "oneOf": [condition(r) for _ in range(r.randrange(2, 4))]}
    elif kind == 3:
        made = {"oneOf": [members(r) for _ in range(r.randrange(2, 4))]}
    elif kind == 4:
        words = r.sample(["cat", "dog", "eel"], r.randrange(2, 4))
        made = {"oneOf": [tagged(r, "t", w, r.random() < 0.7) for w in words]}
        if r.random() < 0.7:
            made["discriminator"] = {"propertyName": "t", "mapping": {w: "#" for w in words}}
        if r.random() < 0.3:
            made = {"oneOf": [made, r.choice([members(r), {"type": "null"}, tagged(r, "t", "fish", True)])]}
            if r.random() < 0.5:
                made["discriminator"] = {"propertyName": "t"}
    elif kind == 5:
        made = {**members(r), "dependentRequired": {n: r.sample(NAMES, r.randrange(1, 3)) for n in r.sample(NAMES, r.randrange(1, 3))}}
    elif kind == 6:
        made = {**members(r), "dependentSchemas": {r.choice(NAMES): r.choice([condition(r), members(r)])}}
    elif kind == 7:
        made = {"anyOf": [{**leaf(r), "not": leaf(r)}, {"oneOf": [leaf(r), leaf(r)]}]}
    else:
        made = {"type": "array", "items": {**leaf(r), **({"not": leaf(r)} if r.random() < 0.5 else {"if": leaf(r), "then": leaf(r)})}, "maxItems": 3}
    return {**made, "$defs": defs}


def number(r):
    return r.choice(BOUNDS) + r.randrange(-1, 2)


def value(r):
    """One that a schema of these may allow."""
    if r.random() < 0.3:
        return r.choice([None, True, False, 1, 0.5, *WORDS, [], [1, 2], number(r)])
    names = r.sample(NAMES + ["t", "z"], r.randrange(4))
    return {n: r.choice([*WORDS, "cat", "dog", None, True, 1, 0, 2.5, [3], number(r)]) for n in names}


def texts(r, made, count):
    del made
    return [json.dumps(value(r), ensure_ascii=False) for _ in range(count)]
