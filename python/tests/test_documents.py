# SPDX-License-Identifier: Apache-2.0
"""Every example of the documents runs: the blocks of a document one after the other, as one program."""

import os
import re
import subprocess
import sys

import pytest

DOCUMENTS = ("python/README.md", "docs/howto/python.md", "README.md")


def blocks(path):
    with open(path, encoding="utf-8") as f:
        return re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_examples_run(paths, tmp_path, document):
    pytest.importorskip("numpy")
    found = blocks(os.path.join(paths["root"], document))
    assert found
    program = "\n".join(found)
    if "import pydantic" in program:
        pytest.importorskip("pydantic")
    for name in ("model.gguf", "pirate.gguf", "poem.gguf"):
        os.symlink(paths["model"] if name == "model.gguf" else paths[name[:-5]], tmp_path / name)
    (tmp_path / "questions.jsonl").write_text('{"prompt": "The cat is", "choices": [" black", " a stone"], "answer": 0}\n' * 2)
    (tmp_path / "conversations.jsonl").write_text('{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Arr!"}]}\n' * 8)
    where = dict(os.environ)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, env=where, timeout=600)
    assert done.returncode == 0, done.stderr
