# SPDX-License-Identifier: Apache-2.0
"""What `weft convert` makes of a Hugging Face folder, llama.cpp loads: same logits, same tokens. usage: test_convert.py build/weft

Needs python3-numpy, Node.js and the npm package node-llama-cpp, which carries llama.cpp prebuilt; WEFT_NODE_LLAMA names the folder it
was installed in. Skipped where one of them is absent."""
import json
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "model"))
import hf_cases as folders  # noqa: E402
import numpy as np  # noqa: E402

hf = folders.hf
PACKAGE = os.environ.get("WEFT_NODE_LLAMA", "")
# llama.cpp has no window for llama and phi3; Mistral's, Mixtral's and Phi 3's folders are compared without one.
WINDOWLESS = ("mistral", "mixtral", "phi3")


@unittest.skipUnless(PACKAGE and shutil.which("node"), "node-llama-cpp is not installed; set WEFT_NODE_LLAMA to its folder")
class Llama(folders.Folder):
    def node(self, script, *args):
        p = subprocess.run(["node", os.path.join(HERE, script), PACKAGE, *args], capture_output=True, timeout=300)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return json.loads(p.stdout)

    def compare(self, case):
        config = dict(case.config)
        if config["model_type"] in WINDOWLESS:
            config["sliding_window"] = None
        if config.get("rope_scaling"):  # YaRN's own betas are read there for other architectures than these
            config["rope_scaling"] = {k: v for k, v in config["rope_scaling"].items() if not k.startswith("beta_")}
        case = folders.Case(case.name, case.class_name, config, case.dtype, case.tokenizer, case.arch, **case.how)
        weights = case.write(self.folder)
        tokens = folders.tokens_for(case)
        expected = hf.forward(case.config, weights, tokens)
        expected -= expected.mean(-1, keepdims=True)
        gguf = self.convert("--type", "f32")
        got = np.log(np.array(self.node("probabilities.mjs", gguf, " ".join(map(str, tokens)))))
        error = folders.nmse(got - got.mean(-1, keepdims=True), expected)
        print(f"{case.name:16} NMSE of llama.cpp's logits {error:.1e}")
        self.assertLess(error, 1e-5)
        for text, theirs in zip(folders.TEXTS, self.node("tokens.mjs", gguf, json.dumps(folders.TEXTS))):
            ours = [int(i) for i in self.tokenize(gguf, text, "--no-bos", "--no-special").split()]
            self.assertEqual(ours, theirs, text)


def add_case(case):
    def test(self):
        self.compare(case)
    setattr(Llama, "test_" + case.name.replace("-", "_"), test)


for each in folders.CASES:
    add_case(each)

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["Llama"]))
