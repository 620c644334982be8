# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share. They run from the root of the tree, against the package that Python finds.

WEFT_PROGRAM   the program whose answers must be the same; without it WEFT_ANSWERS, a file of what it said (answers.py writes it)
WEFT_PY_FULL   1: what takes minutes, too"""

import os
import signal
import sys

import pytest

import weft

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
ROOT = os.path.dirname(os.path.dirname(HERE))
MODEL = os.path.join(ROOT, "models", "alderbrook.gguf")
ADAPTERS = {name: os.path.join(ROOT, "models", name + ".gguf") for name in ("pirate", "poem", "letter")}
FULL = os.environ.get("WEFT_PY_FULL") == "1"
signal.signal(signal.SIGINT, signal.default_int_handler)  # which nohup, and a job in the background, have it ignore


def pytest_configure(config):
    config.addinivalue_line("markers", "full: takes long; runs with WEFT_PY_FULL=1")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("full") and not FULL:
            item.add_marker(pytest.mark.skip(reason="takes long: WEFT_PY_FULL=1 runs it"))


@pytest.fixture(scope="session")
def model():
    with weft.Model(MODEL, threads=2, slots=8, adapters=ADAPTERS) as opened:
        yield opened


@pytest.fixture(scope="session")
def paths():
    return {"root": ROOT, "model": MODEL, **ADAPTERS}
