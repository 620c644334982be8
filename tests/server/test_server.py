# SPDX-License-Identifier: Apache-2.0
"""Claims about the server over a scripted model (fake_engine.c): answers in both dialects, as the documents say them.

usage: test_server.py build/fake_server"""
import unittest

from servers import Case
from absent_fields import Null, Overflow  # noqa: F401
from llama_dialect import State, Texts
from openai_answers import Answers
from openai_forms import Ends, Faults, Forms, Several
from openapi import Documents  # noqa: F401


class OpenAI(Answers, Ends, Several, Forms, Faults, Case):
    """One server for all of them."""


class Llama(Texts, State, Case):
    """One server for both."""


if __name__ == "__main__":
    unittest.main()
