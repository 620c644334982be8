# SPDX-License-Identifier: Apache-2.0
"""Claims about refusals, over a scripted model (fake_engine.c): bad requests, hostile heads and bodies, keys, hosts and origins.

usage: test_hostile.py build/fake_server"""
import unittest

from servers import Case
from hostile_access import Access  # noqa: F401
from hostile_bytes import Bodies, Heads
from hostile_requests import Slow, Wrong


class Refusals(Wrong, Slow, Bodies, Heads, Case):
    """One server for all of them."""
    options = ("--body", 4 << 20, "--head", 16384, "--headers", 50)


if __name__ == "__main__":
    unittest.main()
