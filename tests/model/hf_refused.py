# SPDX-License-Identifier: Apache-2.0
"""Folders that are malformed, each refused by name."""
import json
import os
import shutil
import struct

from hf_cases import LLAMA3_ROPE, LONGROPE, NAMED, YARN, Case, Folder, weft  # noqa: I001  (first: it says where NumPy is missing)
import numpy as np
import common
import hf_folder as hf


def change(**fields):
    """Sets fields of config.json; None removes them."""
    def apply(folder):
        path = os.path.join(folder, "config.json")
        with open(path) as f:
            c = json.load(f)
        for key, value in fields.items():
            if value is None:
                c.pop(key, None)
            else:
                c[key] = value
        with open(path, "w") as f:
            json.dump(c, f)
    return apply


def replace(name, content):
    def apply(folder):
        if content is None:
            os.unlink(os.path.join(folder, name))
            return
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)
    return apply


def weights(edit):
    """Rewrites the weights of a Llama folder with its tensors edited."""
    def apply(folder):
        tensors = hf.random_weights(LLAMA.config, 1)
        edit(tensors)
        hf.write_weights(folder, tensors, "F32")
    return apply


LLAMA = Case("plain", "LlamaForCausalLM", {"model_type": "llama"})
QWEN2 = Case("plain", "Qwen2ForCausalLM", {"model_type": "qwen2"}, tokenizer="qwen")
MOE = NAMED["qwen3moe"]
GEMMA = NAMED["gemma2"]
PHI = NAMED["phi3-long"]
MIXTRAL = NAMED["mixtral"]
JSON_ERROR = "line 1"
# (case, what is done to its folder, words of the message)
REFUSED = [
    (LLAMA, replace("config.json", None), "no config.json"),
    (LLAMA, replace("config.json", b""), "empty"),
    (LLAMA, replace("config.json", b"{"), "config.json: line 1"),
    (LLAMA, replace("config.json", b"[1]"), "config.json: it is no object"),
    (LLAMA, replace("config.json", b"\xff\xfe"), "config.json: line 1"),
    (LLAMA, replace("config.json", b"[" * 100000), "config.json: "),
    (LLAMA, change(architectures=["MambaForCausalLM"]), "'MambaForCausalLM' is not supported; supported are: LlamaForCausalLM, MistralForCausalLM"),
    (LLAMA, change(architectures=["Llama\x1b[31m"]), "'Llama?[31m' is not supported"),
    (LLAMA, change(architectures=None, model_type="bloom"), "'bloom' is not supported"),
    (LLAMA, change(architectures=[3]), "is not supported; supported are"),
    (LLAMA, change(hidden_size=None), "hidden_size is missing"),
    (LLAMA, change(hidden_size="64"), "hidden_size is no whole number"),
    (LLAMA, change(hidden_size=0), "hidden_size is 0, not in 1.."),
    (LLAMA, change(hidden_size=-64), "hidden_size is -64, not in 1.."),
    (LLAMA, change(hidden_size=1 << 40), "hidden_size is 1099511627776"),
    (LLAMA, change(hidden_size=128), "tensor model.embed_tokens.weight is [320, 64]; config.json says [320, 128]"),
    (LLAMA, change(vocab_size=321), "tensor model.embed_tokens.weight is [320, 64]; config.json says [321, 64]"),
    (LLAMA, change(num_hidden_layers=3), "tensor model.layers.2.input_layernorm.weight is missing"),
    (LLAMA, change(num_hidden_layers=1), "tensor model.layers.1.input_layernorm.weight has no place"),
    (LLAMA, change(num_hidden_layers=1 << 30), "num_hidden_layers is 1073741824"),
    (LLAMA, change(num_attention_heads=3), "3 heads cannot share 2"),
    (LLAMA, change(num_attention_heads=0), "num_attention_heads is 0"),
    (LLAMA, change(head_dim=15), "15 rotated elements in a head of 15"),
    (LLAMA, change(head_dim=1 << 19), "4 heads of width 524288"),
    (LLAMA, change(rms_norm_eps="x"), "rms_norm_eps is no number"),
    (LLAMA, change(rope_theta=-1), "rope_theta is -1"),
    (LLAMA, change(rope_scaling=3), "rope_scaling is no object"),
    (LLAMA, change(rope_scaling={"factor": 2.0}), "rope scaling has no rope_type"),
    (LLAMA, change(rope_scaling={"type": "dynamic", "factor": 2.0}), "rope scaling 'dynamic' is not supported"),
    (LLAMA, change(rope_scaling={"type": "linear"}), "factor is missing"),
    (LLAMA, change(rope_scaling={"type": "linear", "factor": 0}), "factor is 0; it must be positive"),
    (LLAMA, change(rope_scaling={**LLAMA3_ROPE, "high_freq_factor": 0.5}), "high_freq_factor 0.5 is not above"),
    (LLAMA, change(rope_scaling=LONGROPE), "'longrope' is supported for Phi 3 only"),
    (LLAMA, change(rope_scaling={**YARN, "mscale": 1.0}), "mscale is not supported"),
    (QWEN2, change(rope_scaling=LLAMA3_ROPE), "'llama3' is supported for Llama only"),
    (PHI, change(rope_scaling={**LONGROPE, "long_factor": [1.0]}), "long_factor is no list of 6 numbers"),
    (PHI, change(rope_scaling={**LONGROPE, "short_factor": [1, 1, 1, 1, 1, 0]}), "entry 5 of short_factor is no positive number"),
    (LLAMA, change(partial_rotary_factor=0.5), "partial_rotary_factor of 0.5 is not supported"),
    (LLAMA, change(hidden_act="relu"), "activation 'relu' is not supported"),
    (LLAMA, change(tie_word_embeddings="yes"), "tie_word_embeddings is neither true nor false"),
    (LLAMA, change(quantization_config={"quant_method": "gptq"}), "quantization_config"),
    (LLAMA, change(layer_types=["full_attention"]), "layer_types is no list of 2 entries"),
    (LLAMA, change(layer_types=["full_attention", "linear_attention"]), "layer 1 is not full_attention"),
    (QWEN2, change(use_sliding_window=True), "use_sliding_window is not supported"),
    (QWEN2, replace("model.safetensors", None), "neither model.safetensors nor"),
    (MOE, change(norm_topk_prob=False), "norm_topk_prob false is not supported"),
    (MOE, change(mlp_only_layers=[0]), "mlp_only_layers is not supported"),
    (MOE, change(decoder_sparse_step=2), "decoder_sparse_step 2"),
    (MOE, change(num_experts=7), "mlp.gate.weight is [6, 64]; config.json says [7, 64]"),
    (MOE, change(num_experts_per_tok=9), "num_experts_per_tok is 9, not in 1..6"),
    (MIXTRAL, change(num_local_experts=3), "block_sparse_moe.gate.weight is [4, 64]; config.json says [3, 64]"),
    (GEMMA, change(query_pre_attn_scalar=8), "query_pre_attn_scalar is 8"),
    (GEMMA, change(attn_logit_softcapping=0), "Gemma 2 without soft-caps"),
    (GEMMA, change(layer_types=["full_attention", "sliding_attention"]), "layer 0 is not sliding_attention"),
    (NAMED["gemma3"], change(sliding_window_pattern=4), "sliding_window_pattern 4 is not supported"),
    (NAMED["gemma3"], change(rope_local_base_freq=20000.0), "rope_local_base_freq"),
    (NAMED["gemma3-eyes"], change(text_config=None), "text_config is missing"),
    (LLAMA, weights(lambda t: t.pop("lm_head.weight")), "tensor lm_head.weight is missing"),
    (LLAMA, weights(lambda t: t.update({"model.extra.weight": np.ones(3)})), "tensor model.extra.weight has no place"),
    (LLAMA, weights(lambda t: t.update({"model.norm.weight": np.ones((64, 1))})), "tensor model.norm.weight is [64, 1]; config.json says [64]"),
    (LLAMA, replace("model.safetensors", b"\x00"), "no safetensors file"),
    (LLAMA, replace("model.safetensors", struct.pack("<Q", 1 << 62) + b"{}"), "truncated"),
    (LLAMA, replace("model.safetensors", struct.pack("<Q", 2) + b"{}x"), "1 of the 1 bytes of tensor data belong to no tensor"),
    (LLAMA, replace("model.safetensors.index.json", b'{"weight_map": {"a": "../../etc/passwd"}}'), "is no plain file name"),
    (LLAMA, replace("tokenizer.json", b"{"), "tokenizer.json: line 1"),
    (LLAMA, replace("tokenizer.json", b"{}"), "tokenizer.json: there is no model"),
    (LLAMA, replace("tokenizer_config.json", b"nope"), "tokenizer_config.json: line 1"),
    (LLAMA, replace("generation_config.json", b"nope"), "generation_config.json: line 1"),
    (NAMED["llama-tied"], replace("tokenizer.model", b"\x0a\xff"), "tokenizer.model: "),
    (NAMED["llama-tied"], replace("tokenizer_config.json", b'{"added_tokens_decoder": {"x": {"content": "y"}}}'), "an entry has no id"),
    (NAMED["llama-tied"], replace("tokenizer_config.json", b'{"added_tokens_decoder": {"9999999": {"content": "y"}}}'), "far beyond the vocabulary"),
    (NAMED["llama-tied"], replace("added_tokens.json", b'{"<pad>": "x"}'), "added_tokens.json: an entry has no id"),
    (LLAMA, change(vocab_size=280), "config.json says [280, 64]"),
]


class Refused(Folder):
    def test_malformed_folders(self):
        self.assertGreaterEqual(len(REFUSED), 60)
        out = self.path("out.gguf")
        for i, (case, damage, words) in list(enumerate(REFUSED))[::common.repeated(1, 2, 5)]:
            with self.subTest(words, i=i):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                case.write(self.folder)
                damage(self.folder)
                for command in (["eval", "logits", self.folder, "--tokens", "1", "-o", out], ["convert", self.folder, out]):
                    p = weft(*command)
                    self.assertEqual(p.returncode, 1, p.stderr)
                    self.assertIn(words, p.stderr.decode())
                    self.assertIn(self.folder, p.stderr.decode())
                    self.assertEqual(p.stdout, b"")
                    self.assertEqual(os.listdir(self.dir), ["model"])
