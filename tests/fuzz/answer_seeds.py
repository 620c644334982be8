#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes answers in every format as seeds: made of the steps in src/text/answer/formats_table.c.  Usage: answer_seeds.py FOLDER"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CALL = '{"name": "f", "arguments": {"s": "a\\n\\"b\\"", "o": {"k": [1, null]}}, "tool_name": "f", "parameters": {}, "id": "x1"}'
# What a step may stand for.
STANDS = {"NAME": "f", "ID": "x1", "NAMED_ID": "functions.f:0", "SKIP": "function", "ARGUMENTS": '{"s": "x", "n": [1]}', "CALL": CALL,
          "KEYWORDS": "(s='it\\'s', n=3, o={\"k\": [True, None]})", "PAIRS": '{s:<|"|>a<|"|>,n:3,o:{k:[true]}}', "KEY": "s", "TYPE": "string",
          "VALUE": "a < b", "ELEMENTS": "]<]minimax[>[<l>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[</l>"}

# The table's macros, as far as steps go.
MACROS = [(r'DSML\("(\w+)"\)', r'SECTION("<｜DSML｜\1>", ELEMENT("<｜DSML｜invoke name=\\"", "</｜DSML｜invoke>"), "</｜DSML｜\1>")'),
          (r'ELEMENT\(("(?:[^"\\]|\\.)*"), ("[^"]*")\)', r'MARK(\1) STEP(NAME) MARK("\\">") STEP(PARAMETERS) MARK(\2)'),
          (r'SECTION\(("[^"]*"),(.*?),\s*("[^"]*")\)', r'MARK(\1) \2 MARK(\3)'),
          (r'\bBARE_CALL\b', r'STEP(CALL)'),
          (r'PYTHON_LIST\(("[^"]*"), ("[^"]*")\)', r'MARK(\1) MARK("[") STEP(NAME) STEP(KEYWORDS) MARK("]") MARK(\2)'),
          (r'MARKED_LIST\(("[^"]*"), ("[^"]*")\)', r'MARK(\1) MARK("[") STEP(CALL) MARK("]") MARK(\2)'),
          (r'DSML_PARAMETER', r'MARK("<｜DSML｜parameter name=\\"") STEP(KEY) MARK("\\" string=\\"") STEP(TYPE) MARK("\\">") STEP(VALUE)'
           r' MARK("</｜DSML｜parameter>")')]

with open(os.path.join(HERE, "..", "..", "src", "text", "answer", "formats_table.c"), encoding="utf-8") as f:
    formats = re.split(r'\.name = "', f.read().split("weft__answer_formats[] = {")[1])[1:]
os.makedirs(sys.argv[1], exist_ok=True)


def steps(text, parameter=""):
    """The text that a list of steps writes."""
    out = ""
    for op, literal in re.findall(r'\b(?:MARK|MAYBE|SPACE|STEP)\((?:(\w+)|"((?:[^"\\]|\\.)*)")\)', text):
        if op == "PARAMETERS":
            out += parameter
        else:
            out += STANDS.get(op, "") if op else literal.replace("\\n", "\n").replace('\\"', '"')
    return out


for number, text in enumerate(formats):
    for pattern, becomes in MACROS:
        text = re.sub(pattern, becomes, text, flags=re.S)
    forms, _, rest = text.partition(".parameter =")
    before, _, behind = rest.partition("STEP(VALUE)")
    parameter = steps(before + "STEP(VALUE)" + behind.split(")")[0] + ")") if behind else ""
    answer = "<think>hm</think>Let me see.\n" + steps(forms.split(".reasoning =")[0], parameter)
    for flags in (0, 4):
        with open(os.path.join(sys.argv[1], f"{number:02}-{flags}"), "wb") as f:
            f.write(bytes([number, flags, number % 16]) + answer.encode())
