# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: where the program and the reference material are, and how outcomes become an exit status.

A test that needs what may be absent (reference material, a tool) is marked with `needs`: it is skipped then, and a program in which
a test was skipped and none failed exits with 77: not passed. So that the rest still counts, such a program runs twice, with
--material for the marked tests and with --no-material for the others. A test that means nothing in this configuration is marked
with `leave_out` and is not run, nor counted."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "material"))
from where import NEEDS_REFERENCE, NO_MODELS, shared  # noqa: E402

WEFT = os.environ.get("WEFT_EMULATOR", "").split() + [os.path.abspath(sys.argv.pop(1))]
EMULATED = bool(os.environ.get("WEFT_EMULATOR"))
# Seconds that end a hang: what is waited for comes much sooner, but on a slow machine not soon.
PATIENCE = float(os.environ.get("WEFT_PATIENCE") or 600)
WHOLE = os.environ.get("WEFT_SWEEPS") == "1"  # make test-all
THREADS_WATCHED = "TSAN_OPTIONS" in os.environ
SANITIZED = THREADS_WATCHED or "ASAN_OPTIONS" in os.environ


def repeated(in_full, seldom, least):
    """How often a claim is repeated, or for what: see CLAIMS_REPEATED in tests/claims.h."""
    return least if EMULATED or THREADS_WATCHED else seldom if SANITIZED and not WHOLE else in_full


def skip_emulated(why):
    """Ends a program of tests as skipped, with the reason, where the processor is emulated."""
    if EMULATED:
        print(f"SKIP: not run emulated: {why}")
        sys.exit(77)


STORIES = shared("models", "stories260K.gguf")
TINY_LLAMA = shared("models", "tiny-llama.f16.gguf")
HAVE_MODELS = os.path.exists(STORIES) and os.path.exists(TINY_LLAMA)


def check_report(stderr):
    """Fails when a sanitizer reported something: its exit status alone may look like that of an error that was expected."""
    if b"Sanitizer" in stderr or b"runtime error:" in stderr:
        raise AssertionError(stderr.decode(errors="replace"))


def run(command, **kwargs):
    """subprocess.run with both outputs captured, checked for reports."""
    p = subprocess.run(command, **{"capture_output": True, "timeout": PATIENCE, **kwargs})
    check_report(p.stderr)
    return p


def weft(*args, stdin=b"", **kwargs):
    return run(WEFT + list(args), input=stdin, **kwargs)


def needs(present, what):
    """Marks a test, or all of a class, that needs something of outside; `what` names it and the remedy."""
    def mark(test):
        test.material = True
        return test if present else unittest.skip(what)(test)
    return mark


needs_models = needs(HAVE_MODELS, NO_MODELS)


def leave_out(condition, why):
    """Marks a test, or all of a class, that says nothing here."""
    def mark(test):
        if condition:
            test.left_out = why
        return test
    return mark


class InFolder(unittest.TestCase):
    """Tests that share a folder, which is gone behind them."""
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)


def marked(test, name):
    method = getattr(test, test._testMethodName, None)
    return getattr(method, name, None) or getattr(test, name, None)


def chosen(suite, material):
    """The tests to run: `material` True: only those that need some, False: only the others, None: all."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, material)
        elif marked(test, "left_out"):
            print(f"left out: {test}: {marked(test, 'left_out')}")
        elif material is None or material == bool(marked(test, "material")):
            yield test


def main():
    """unittest.main of the calling program, with its options, but for the exit status: 0 passed, 1 failed, 77 skipped."""
    material = None
    for option, value in (("--material", True), ("--no-material", False)):
        if option in sys.argv:
            sys.argv.remove(option)
            material = value
    program = unittest.main(exit=False, testLoader=Loader(material))
    result = program.result
    for test, why in result.skipped:
        print(f"SKIP: {why}" if why.startswith(NEEDS_REFERENCE) else f"SKIP: {test}: {why}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped else 0 if result.testsRun else "there are no such tests")


class Loader(unittest.TestLoader):
    def __init__(self, material):
        super().__init__()
        self.material = material

    def loadTestsFromModule(self, *args, **kwargs):
        return self.suiteClass(chosen(super().loadTestsFromModule(*args, **kwargs), self.material))
