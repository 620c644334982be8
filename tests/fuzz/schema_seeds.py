#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the schemas of tests/unit/schema_cases.json as seeds.  Usage: schema_seeds.py FOLDER"""
import json
import os
import sys

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "schema_cases.json")) as f:
    TABLE = json.load(f)
os.makedirs(sys.argv[1], exist_ok=True)
for i, schema in enumerate([c["schema"] for c in TABLE["cases"]] + [r[0] for r in TABLE["refused"]]):
    with open(os.path.join(sys.argv[1], f"{i:03}.json"), "w") as f:
        json.dump(schema, f)
