#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the module through which cffi calls libweft: what the public headers declare, as a C compiler preprocesses them.

Usage: cdef.py CC INCLUDE OUT     INCLUDE: the folder that has weft/weft.h; OUT: weft/_abi.py of a build; needs cffi

All of weft.h, train.h, eval.h and server.h is declared, but for functions with a variable number of arguments. Constants that are macros become
constants of the module."""
import ast
import os
import re
import shlex
import subprocess
import sys
import tempfile

SOURCE = '#include "weft/weft.h"\n#include "weft/train.h"\n#include "weft/eval.h"\n#include "weft/server.h"\n'
# Constants: not functions, not lists, not what is for compilers.
CONSTANT = re.compile(r"#define (WEFT_\w+) +(.+)")


def preprocess(cc, include, source, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
        f.write(source)
        f.flush()
        return subprocess.run([*shlex.split(cc), "-E", "-std=c99", "-I", include, *options, f.name], capture_output=True, text=True, check=True).stdout


def ours(text, include):
    """The lines that stand in our own headers."""
    lines, keep = [], False
    for line in text.splitlines():
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            keep = os.path.abspath(mark.group(1)).startswith(os.path.abspath(include) + os.sep)
        elif keep and line.strip():
            lines.append(line)
    return "\n".join(lines)


def declarations(cc, include):
    text = ours(preprocess(cc, include, SOURCE), include)
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", "", text)
    text = re.sub(r"extern char weft_static_assert_\[[^\]]*\];|_Static_assert\s*\([^;]*;", "", text)
    return re.sub(r"^[^;{}]*\.\.\.\s*\)\s*;", "", text, flags=re.M)


def value_of(text):
    """A number, of what a macro expands to; None: it is none."""
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return None
    if any(not isinstance(node, (ast.Expression, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)) for node in ast.walk(tree)):
        return None
    value = eval(compile(tree, "macro", "eval"))  # numbers and operators alone
    return value if isinstance(value, int) else None


def constants(cc, include):
    """{name: number} of the macros of our headers that are numbers."""
    names = []
    for name in sorted(os.listdir(os.path.join(include, "weft"))):
        with open(os.path.join(include, "weft", name)) as f:
            names += CONSTANT.findall(f.read())
    names = [name for name, _ in names]
    text = preprocess(cc, include, SOURCE + "".join(f'weft_constant "{name}" {name};\n' for name in names), "-P")
    values = {name: value_of(value) for name, value in re.findall(r'weft_constant\s+"(\w+)"\s+([^;]*);', text)}
    return {name: value for name, value in values.items() if value is not None}


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    cc, include, out = sys.argv[1:]
    import cffi

    builder = cffi.FFI()
    text = declarations(cc, include) + "\n" + "\n".join(f"#define {name} {value}" for name, value in constants(cc, include).items())
    builder.cdef(text)
    builder.set_source("weft._abi", None)
    builder.emit_python_code(out)
    with open(out) as f:
        made = f.read()
    with open(out, "w") as f:
        f.write("# mypy: ignore-errors\n" + made)


if __name__ == "__main__":
    main()
