#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the patterns of tests/unit/schema_cases.json as seeds.  Usage: regex_seeds.py FOLDER"""
import json
import os
import sys

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "schema_cases.json")) as f:
    TABLE = json.load(f)


def patterns(value):
    """All strings that stand under "pattern", and the names of patternProperties."""
    if isinstance(value, list):
        return [p for v in value for p in patterns(v)]
    if not isinstance(value, dict):
        return []
    own = [value["pattern"]] if isinstance(value.get("pattern"), str) else []
    more = value.get("patternProperties")
    return own + list(more if isinstance(more, dict) else []) + [p for v in value.values() for p in patterns(v)]


os.makedirs(sys.argv[1], exist_ok=True)
found = patterns([c["schema"] for c in TABLE["cases"]] + [r[0] for r in TABLE["refused"]])
for i, pattern in enumerate(dict.fromkeys(found)):
    with open(os.path.join(sys.argv[1], f"{i:03}"), "w") as f:
        f.write(pattern)
