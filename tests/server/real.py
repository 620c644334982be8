# SPDX-License-Identifier: Apache-2.0
"""What the tests of the real `weft serve` share: the program, as a Server, with the model of our own.

usage: PROGRAM build/weft"""
import os

from servers import EMULATOR, PROGRAM, ROOT, Server


def models(name):
    return os.path.join(ROOT, "models", name)


MODEL = models("alderbrook.gguf")
N_VOCAB, BOS, BOS_TEXT, EOS, WIDTH = 2048, 0, "<|startoftext|>", 1, 256
STYLES = {s: f"{s}={models(s + '.gguf')}" for s in ("pirate", "poem", "letter")}  # its adapters, as an option has them
ADAPTERS = [a for s in STYLES.values() for a in ("--adapter", s)]
# A template that refuses roles, as the model's own does not.
TEMPLATE = """{{ bos_token }}{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('there is no role ' ~ "'" ~ m.role ~ "'") }}{% endif %}{{ m.content }}
{% endfor %}{% if add_generation_prompt %}Once{% endif %}"""


def write_template(folder):
    path = os.path.join(folder, "template.jinja")
    with open(path, "w") as f:
        f.write(TEMPLATE)
    return path


def without_template(to):
    """The model with another name for the key of its template."""
    key = b"tokenizer.chat_template"
    with open(MODEL, "rb") as f:
        data = f.read()
    assert data.count(key) == 1
    with open(to, "wb") as f:
        f.write(data.replace(key, b"tokenizer.not_template_"))


def with_other_weights(to):
    """The model with the lowest bit of each byte in half of its weights turned: of as many tokens, layers and bytes, and of another mind."""
    with open(MODEL, "rb") as f:
        data = bytearray(f.read())
    for i in range(len(data) // 2, len(data)):
        data[i] ^= 1
    with open(to, "wb") as f:
        f.write(data)


def serve(*options, **more):
    return Server([*EMULATOR, PROGRAM, "serve", more.pop("model", MODEL), "--port", -1, "--threads", 2, *options], **more)


def checked_stop(server):
    """Ends a server; it must end well, and no sanitizer may have reported anything."""
    status, err = server.stop()
    assert status == 0 and "Sanitizer" not in err and "runtime error:" not in err, (status, err)
    return err
