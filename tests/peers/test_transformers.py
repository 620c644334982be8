# SPDX-License-Identifier: Apache-2.0
"""The plain forward pass that hf_reference.py holds Weft against gives the logits of transformers. usage: test_transformers.py build/weft

Needs python3-numpy, transformers and torch (tests/peers/run installs them). Skipped where one of them is absent."""
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model"))
import hf_cases as folders  # noqa: E402

try:
    import torch
    import transformers
except ImportError:
    torch = transformers = None


@unittest.skipUnless(transformers, "transformers and torch are not installed")
class Transformers(folders.Folder):
    def test_same_logits(self):
        torch.set_grad_enabled(False)
        for case in folders.CASES:
            if "eyes" in case.name or "unaligned" in case.name:
                continue
            with self.subTest(case.name):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                weights = case.write(self.folder)
                tokens = folders.tokens_for(case)
                model = transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32, attn_implementation="eager")
                theirs = model(torch.tensor([tokens])).logits[0].double().numpy()
                length = 32 if case.name == "phi3-long" else None  # chosen there by the tokens at hand
                ours = folders.hf.forward(case.config, weights, tokens, length)
                self.assertLess(folders.nmse(ours, theirs), 1e-9, case.name)
                print(case.name, folders.nmse(ours, theirs))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["Transformers"]))
