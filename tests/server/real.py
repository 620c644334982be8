"""What the tests of the real `weft serve` share: a model that it serves, made from the reference stories model by giving that a chat
template, and the program as a Server. A program that imports this is skipped (77) where there is no reference material.

usage: PROGRAM build/weft"""
import atexit
import os
import shutil
import struct
import sys
import tempfile

from servers import PROGRAM, SLOWER, EMULATOR, Server

SHARED = os.environ.get("WEFT_SHARED") or "../shared"
STORIES = os.path.join(SHARED, "models", "stories260K.gguf")
TEMPLATE = """{{ bos_token }}{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('there is no role ' ~ "'" ~ m.role ~ "'") }}{% endif %}{{ m.content }}
{% endfor %}{% if add_generation_prompt %}Once{% endif %}"""
SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9


def skip_string(data, at):
    return at + 8 + struct.unpack_from("<Q", data, at)[0]


def skip_value(data, at, kind):
    if kind == STRING:
        return skip_string(data, at)
    if kind != ARRAY:
        return at + SCALARS[kind]
    kind, n = struct.unpack_from("<IQ", data, at)
    at += 12
    if kind in SCALARS:
        return at + n * SCALARS[kind]
    for _ in range(n):
        at = skip_value(data, at, kind)
    return at


def add_string(source, to, key, value):
    """A GGUF file (of alignment 32) with one more string in its metadata."""
    with open(source, "rb") as f:
        data = f.read()
    version, n_tensors, n_meta = struct.unpack_from("<IQQ", data, 4)
    at = 24
    for _ in range(n_meta):
        at = skip_string(data, at)
        at = skip_value(data, at + 4, struct.unpack_from("<I", data, at)[0])
    tensors = at
    for _ in range(n_tensors):
        at = skip_string(data, at)
        at += 4 + 8 * struct.unpack_from("<I", data, at)[0] + 12
    key, value = key.encode(), value.encode()
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", STRING, len(value)) + value
    head = data[:4] + struct.pack("<IQQ", version, n_tensors, n_meta + 1) + data[24:tensors] + entry + data[tensors:at]
    with open(to, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data[at + -at % 32:])


def make_model():
    if not os.path.exists(STORIES):
        print("skipped: no reference models; set WEFT_SHARED")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="weft-serve-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "stories.gguf")
    add_string(STORIES, path, "tokenizer.chat_template", TEMPLATE)
    return path


MODEL = make_model()


def serve(*options, **more):
    return Server([*EMULATOR, PROGRAM, "serve", MODEL, "--port", -1, "--threads", 2, *options], **more)


def checked_stop(server):
    """Ends a server; it must end well, and no sanitizer may have reported anything."""
    status, err = server.stop(60)
    assert status == 0 and "Sanitizer" not in err and "runtime error:" not in err, (status, err)
    return err
