# SPDX-License-Identifier: Apache-2.0
"""The package and the library say the same: statuses, options, functions, structs, versions."""

import glob
import os
import re
import shutil
import subprocess
import sys

import pytest

import weft
import weft._errors
import weft._requests
import weft._server
import weft._tools
from weft._native import ffi, lib


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def test_one_class_for_each_status():
    listed = ffi.typeof("weft_status").relements
    assert set(weft._errors.BY_STATUS) == set(listed.values()) - {0}
    for name, status in listed.items():
        if status:
            assert f"``{name}``" in (weft._errors.BY_STATUS[status].__doc__ or "")


TYPED = {"_tools.TrainOptions": "weft_train_params", "_tools.VocabOptions": "weft_vocab_params", "_server.ServerOptions": "weft_server_params"}


@pytest.mark.parametrize("options, struct", TYPED.items())
def test_options_are_the_fields(paths, options, struct):
    """Typed options are read from the source: they are there for type checkers alone."""
    module, name = options.split(".")
    source = read(os.path.dirname(weft.__file__), module + ".py")
    block = re.search(rf"    class {name}\(.*?(?=\n\n\n|\n    class )", source, re.S).group()
    typed = set(re.findall(r"^        (\w+): ", block, re.M))
    fields = {field for field, _ in ffi.typeof(struct).fields}
    given = {"size", "reserved", "progress", "progress_arg", "report", "arg", "stop", "data", "heldout", "out", "port", "host", "config_setting", "config_arg"}
    given |= {"model_loaded", "loaded_arg"}  # what a program wants to be told
    given |= {"neighbors", "answers", "keep", "n_scales"}  # lists of files beside data; as long as scales
    given |= {"sources", "n_sources", "model_params", "engine_params", "memory", "idle_unload_s"}  # further models: it serves the one it was given
    assert typed == fields - given


def test_the_options_of_generate_are_typed_and_documented():
    source = read(os.path.dirname(weft._requests.__file__), "_requests.py")
    block = re.search(r"    class Options\(.*?(?=    class )", source, re.S).group()
    assert set(re.findall(r"^        (\w+): ", block, re.M)) == set(weft._requests.OPTIONS)
    for name in weft._requests.OPTIONS:
        assert name in weft.Model.generate.__doc__


def test_every_function_of_the_headers_is_there(paths):
    script = os.path.join(paths["root"], "scripts", "api-reference")
    names = subprocess.run([sys.executable, script, "--functions"], capture_output=True, text=True, check=True).stdout.split()
    plugins = read(paths["root"], "include", "weft", "backend.h") + read(paths["root"], "include", "weft", "graph.h")
    wanted = [name for name in names if not re.search(rf"\b{name}\(", plugins) and name not in ("weft_fail", "weft_fail_within")]
    assert len(wanted) > 100
    for name in wanted:
        assert getattr(lib, name), name


def is_known_struct(name):
    """Not a type of functions, nor one whose fields the headers keep to themselves, for which some cffi abort."""
    try:
        return ffi.sizeof(name) > 0 and ffi.typeof(name).kind == "struct"
    except (ffi.error, ValueError):
        return False


def test_structs_lie_as_the_compiler_lays_them(paths, tmp_path):
    cc = shutil.which("cc")
    if not cc:
        pytest.skip("no C compiler")
    kinds = [name for name in ffi.list_types()[0] if is_known_struct(name)]
    lines = []
    for kind in kinds:
        lines.append(f'printf("{kind} %zu\\n", sizeof({kind}));')
        lines += [f'printf("{kind}.{field} %zu\\n", offsetof({kind}, {field}));' for field, _ in ffi.typeof(kind).fields]
    source = tmp_path / "layout.c"
    headers = ["<stddef.h>", "<stdio.h>", '"weft/weft.h"', '"weft/train.h"', '"weft/eval.h"', '"weft/server.h"']
    source.write_text("\n".join([*(f"#include {header}" for header in headers), "int main(void) {", *lines, "}"]))
    subprocess.run([cc, "-I", os.path.join(paths["root"], "include"), str(source), "-o", str(tmp_path / "layout")], check=True)
    said = dict(line.split() for line in subprocess.run([str(tmp_path / "layout")], capture_output=True, text=True, check=True).stdout.splitlines())
    assert len(kinds) > 30
    for kind in kinds:
        assert int(said[kind]) == ffi.sizeof(kind), kind
        for field, _ in ffi.typeof(kind).fields:
            assert int(said[f"{kind}.{field}"]) == ffi.offsetof(kind, field), f"{kind}.{field}"


def test_constants():
    assert lib.WEFT_SLOTS_MAX == 128 and lib.WEFT_CTX_MAX == 1 << 24 and lib.WEFT_ADAPTER_AUTO == 2**32 - 1


def test_it_is_typed_and_documented():
    folder = os.path.dirname(weft.__file__)
    assert os.path.exists(os.path.join(folder, "py.typed")) and weft.__version__ == ffi.string(lib.weft_version()).decode()
    for name in weft.__all__:
        thing = getattr(weft, name)
        assert thing.__doc__, name
        for member, value in vars(thing).items() if isinstance(thing, type) else ():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert value.__doc__, f"{name}.{member}"
    assert glob.glob(os.path.join(folder, "_abi.py"))
