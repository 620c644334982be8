#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package against the library of a build: what `weft run` says, streams, chats, forms, adapters, training, a server, threads, forks
and signals. usage: in_tree.py build/weft [pytest's arguments]

The package is put together in build/python, as the wheel has it; pip has no part in it (python_check does that). Skipped where Python lacks
cffi or pytest."""

import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    program = os.path.abspath(sys.argv[1])
    build = os.path.dirname(program)
    library = os.path.join(build, "library", "libweft.so")
    for module in ("cffi", "pytest"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
            print(f"skipped: {sys.executable} has no {module} (scripts/setup test installs it)")
            return 77
    if not os.path.exists(library):
        print(f"skipped: there is no {library}")
        return 77
    package = os.path.join(build, "python", "weft")
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(os.path.join(ROOT, "python", "weft"), package, ignore=shutil.ignore_patterns("__pycache__", "_abi.py", "*.so"))
    made = os.path.join(package, "_abi.py")
    subprocess.run([sys.executable, os.path.join(ROOT, "python", "cdef.py"), os.environ.get("CC", "cc"), os.path.join(ROOT, "include"), made], check=True)
    where = dict(os.environ, PYTHONPATH=os.path.dirname(package), PYTHONDONTWRITEBYTECODE="1", WEFT_LIBRARY=library, WEFT_PROGRAM=program)
    arguments = sys.argv[2:] or ["-q", os.path.join(ROOT, "python", "tests")]
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments], cwd=ROOT, env=where).returncode


if __name__ == "__main__":
    sys.exit(main())
