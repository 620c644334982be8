"""What the tests of the command line share: where the program and the reference material are."""
import os
import subprocess
import sys

WEFT = os.environ.get("WEFT_EMULATOR", "").split() + [os.path.abspath(sys.argv.pop(1))]
SHARED = os.environ.get("WEFT_SHARED") or "../shared"
EMULATED = bool(os.environ.get("WEFT_EMULATOR"))


def shared(*parts):
    return os.path.join(SHARED, *parts)


STORIES = shared("models", "stories260K.gguf")
TINY_LLAMA = shared("models", "tiny-llama.f16.gguf")
HAVE_MODELS = os.path.exists(STORIES) and os.path.exists(TINY_LLAMA)


def weft(*args, stdin=b"", **kwargs):
    return subprocess.run(WEFT + list(args), input=stdin, capture_output=True, timeout=600, **kwargs)
