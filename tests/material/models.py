# SPDX-License-Identifier: Apache-2.0
"""Tiny models as GGUF files, and their logits: seeded random weights of every architecture, and the way from any such file to the plain
forward pass of tests/model/hf_folder.py. NumPy only."""
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "model"), os.path.join(HERE, "..", "cli")]
import blocks  # noqa: E402
import gguf_file  # noqa: E402
import gguf_maker as gguf  # noqa: E402
import hf_folder as hf  # noqa: E402

D, FF, LAYERS, HEADS, KV, HEAD, EXPERTS = 256, 512, 3, 4, 2, 64, 4
# name: (architecture, base of rope, further metadata). Soft-caps are low and windows short, so that both show in few tokens.
TINY = {
    "llama": ("llama", 10000.0, {}), "llama3": ("llama", 500000.0, {}),
    "mixtral": ("llama", 10000.0, {"expert_count": (gguf.U32, EXPERTS), "expert_used_count": (gguf.U32, 2)}),
    "qwen2": ("qwen2", 1000000.0, {}), "qwen3": ("qwen3", 1000000.0, {}),
    "qwen3moe": ("qwen3moe", 1000000.0, {"expert_count": (gguf.U32, EXPERTS), "expert_used_count": (gguf.U32, 2),
                                         "expert_feed_forward_length": (gguf.U32, 256)}),
    "phi3": ("phi3", 10000.0, {"attention.sliding_window": (gguf.U32, 32)}),
    "gemma2": ("gemma2", 10000.0, {"attention.sliding_window": (gguf.U32, 16), "attn_logit_softcapping": (gguf.F32, 5.0),
                                   "final_logit_softcapping": (gguf.F32, 8.0)}),
    "gemma3": ("gemma3", 10000.0, {"attention.sliding_window": (gguf.U32, 16)}),
}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
LINEARS = {"attn_q": (HEADS * HEAD, D), "attn_k": (KV * HEAD, D), "attn_v": (KV * HEAD, D), "attn_output": (D, HEADS * HEAD),
           "ffn_gate": (FF, D), "ffn_up": (FF, D), "ffn_down": (D, FF)}


# ---- files ----

class File:
    """A GGUF file that was read: metadata, and tensors as float64."""

    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        self.meta, self.kinds, places = gguf_file.parse(data)
        self.types = {name: kind for name, _, kind, _ in places}
        self.tensors = {name: blocks.decode(kind, data[at:at + blocks.size(kind, int(np.prod(shape)))]).reshape(shape) for name, shape, kind, at in places}

    def key(self, name, otherwise=None):
        return self.meta.get(f"{self.meta['general.architecture']}.{name}", otherwise)


def write(path, meta, tensors):
    """tensors: [(name, array, type)]; the file is there whole or not at all."""
    entries = [(name, a.shape[::-1], kind, blocks.encode(kind, a)) for name, a, kind in tensors]
    save(path, gguf.file(meta, entries))


def save(path, data):
    with open(path + ".tmp", "wb") as f:
        f.write(data)
    os.replace(path + ".tmp", path)


def tiny_meta(name, vocabulary, file_type):
    """vocabulary: what a file says of it."""
    arch, base, more = TINY[name]
    eps = 1e-6 if arch == "gemma2" else 1e-5
    fields = {"context_length": (gguf.U32, 512), "embedding_length": (gguf.U32, D), "block_count": (gguf.U32, LAYERS),
              "feed_forward_length": (gguf.U32, FF), "attention.head_count": (gguf.U32, HEADS), "attention.head_count_kv": (gguf.U32, KV),
              "attention.layer_norm_rms_epsilon": (gguf.F32, eps), "vocab_size": (gguf.U32, len(vocabulary["tokenizer.ggml.tokens"][1][1])),
              "attention.key_length": (gguf.U32, HEAD), "attention.value_length": (gguf.U32, HEAD), "rope.dimension_count": (gguf.U32, HEAD),
              "rope.freq_base": (gguf.F32, base), **more}
    meta = {"general.architecture": (gguf.STRING, arch), "general.name": (gguf.STRING, "tiny"), **vocabulary}
    meta.update({f"{arch}.{key}": v for key, v in fields.items()})
    meta["general.file_type"] = (gguf.U32, file_type)
    return meta


def layer_shapes(name):
    """What a layer of it has: {tensor: shape}, in the order of the file."""
    arch, qk_norms = TINY[name][0], {"attn_q_norm.weight": (HEAD,), "attn_k_norm.weight": (HEAD,)}
    weight = {n + ".weight": s for n, s in LINEARS.items()}
    attention = {n: weight[n] for n in ("attn_q.weight", "attn_k.weight", "attn_v.weight")}
    if arch == "phi3":
        attention = {"attn_qkv.weight": ((HEADS + 2 * KV) * HEAD, D)}
    shapes = {"attn_norm.weight": (D,), **attention}
    if arch == "qwen2":
        shapes.update({f"attn_{c}.bias": attention[f"attn_{c}.weight"][:1] for c in "qkv"})
    if arch in ("qwen3", "qwen3moe", "gemma3"):
        shapes.update(qk_norms)
    shapes["attn_output.weight"] = weight["attn_output.weight"]
    if arch in ("gemma2", "gemma3"):
        shapes.update({"post_attention_norm.weight": (D,), "post_ffw_norm.weight": (D,)})
    shapes["ffn_norm.weight"] = (D,)
    if "expert_count" in TINY[name][2]:
        n = TINY[name][2].get("expert_feed_forward_length", (0, FF))[1]
        shapes.update({"ffn_gate_inp.weight": (EXPERTS, D), "ffn_gate_exps.weight": (EXPERTS, n, D), "ffn_up_exps.weight": (EXPERTS, n, D),
                       "ffn_down_exps.weight": (EXPERTS, D, n)})
    elif arch == "phi3":
        shapes.update({"ffn_up.weight": (2 * FF, D), "ffn_down.weight": weight["ffn_down.weight"]})
    else:
        shapes.update({n: weight[n] for n in ("ffn_gate.weight", "ffn_up.weight", "ffn_down.weight")})
    return shapes


def tiny_tensors(name, n_vocab, seed):
    """[(name, array)]: weights that keep numbers near 1 through all layers."""
    rng, gemma = np.random.RandomState(seed), name.startswith("gemma")  # whose numbers no version of NumPy changes

    def draw(tensor, shape):
        if tensor.endswith("norm.weight"):
            return rng.normal(1, 0.2, shape)
        return rng.normal(0, 0.3 if tensor.endswith(".bias") else 1 / np.sqrt(shape[-1]), shape)

    # Gemma's embedding is its output matrix, too, and scaled up by sqrt(D): it is small, so that a token does not follow itself for ever.
    scale = 1 / 8 if gemma else 1
    out = [
        ("token_embd.weight", rng.normal(0, scale / np.sqrt(D), (n_vocab, D))),
        ("output_norm.weight", draw("norm.weight", (D,)) / scale * (2 if gemma else 1)),
    ]
    if not gemma:
        out.append(("output.weight", rng.normal(0, 2 / np.sqrt(D), (n_vocab, D))))
    if name == "llama3":
        c = {"head_dim": HEAD, "rope_theta": TINY[name][1]}
        out.append(("rope_freqs.weight", hf.inverse_frequencies(c, False, 0)[0] / hf.inverse_frequencies({**c, "rope_scaling": LLAMA3}, False, 0)[0]))
    return out + [(f"blk.{l}.{n}", draw(n, shape)) for l in range(LAYERS) for n, shape in layer_shapes(name).items()]


def adapter_tensors(linears, rank, seed):
    rng, out = np.random.RandomState(seed), []
    for l in range(LAYERS):
        for n in linears:
            out += [(f"blk.{l}.{n}.weight.lora_a", rng.normal(0, 1 / np.sqrt(D), (rank, LINEARS[n][1]))),
                    (f"blk.{l}.{n}.weight.lora_b", rng.normal(0, 0.4 / np.sqrt(rank), (LINEARS[n][0], rank)))]
    return out


# ---- the forward pass ----

KINDS = {"qwen3moe": "qwen3_moe", "gemma3": "gemma3_text"}
PLACES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
          "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
          "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
OF_GEMMA = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm", "ffn_norm": "pre_feedforward_layernorm"}
EXPERT = {"qwen3_moe": ("mlp.gate", "mlp.experts", {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}),
          "mixtral": ("block_sparse_moe.gate", "block_sparse_moe.experts", {"gate": "w1", "up": "w3", "down": "w2"})}


def config_of(f):
    """As config.json says it."""
    arch, heads, d = f.meta["general.architecture"], f.key("attention.head_count"), f.key("embedding_length")
    kind = "mixtral" if arch == "llama" and f.key("expert_count") else KINDS.get(arch, arch)
    c = {"model_type": kind, "hidden_size": d, "num_hidden_layers": f.key("block_count"), "num_attention_heads": heads,
         "num_key_value_heads": f.key("attention.head_count_kv"), "head_dim": f.key("attention.key_length", d // heads),
         "max_position_embeddings": f.key("context_length"), "original_max_position_embeddings": f.key("context_length"),
         "rms_norm_eps": f.key("attention.layer_norm_rms_epsilon"), "rope_theta": f.key("rope.freq_base", 10000.0),
         "sliding_window": f.key("attention.sliding_window"), "num_experts_per_tok": f.key("expert_used_count"),
         "attn_logit_softcapping": f.key("attn_logit_softcapping"), "final_logit_softcapping": f.key("final_logit_softcapping")}
    c["query_pre_attn_scalar"] = c["head_dim"]
    if "rope_freqs.weight" in f.tensors:  # LongRoPE without its scaling is a list of divisors, too
        factors = f.tensors["rope_freqs.weight"]
        c["rope_scaling"] = {"rope_type": "longrope", "short_factor": factors, "long_factor": factors}
    return c


def in_halves(w, heads):
    """Rows of q or k as transformers has them: what is rotated together stands half a head apart; in llama's files, side by side."""
    return w.reshape(heads, -1, 2, w.shape[-1]).swapaxes(1, 2).reshape(w.shape)


def place(c, layer, name, a):
    """The tensors of a layer that `name` is in transformers."""
    p, (stem, last), kind = f"model.layers.{layer}.", name.rsplit(".", 1), c["model_type"]
    if stem == "ffn_gate_inp" or stem.endswith("_exps"):
        gate, experts, names = EXPERT[kind]
        if stem == "ffn_gate_inp":
            return {f"{p}{gate}.weight": a}
        return {f"{p}{experts}.{e}.{names[stem[4:-5]]}.weight": a[e] for e in range(len(a))}
    if kind in ("llama", "mixtral") and stem in ("attn_q", "attn_k"):
        a = in_halves(a, c["num_attention_heads" if stem == "attn_q" else "num_key_value_heads"])
    if kind in hf.GEMMAS and stem.endswith("norm"):
        a = a - 1
    if kind == "phi3" and stem == "ffn_up":
        return {p + "mlp.gate_up_proj.weight": a}
    return {f"{p}{(OF_GEMMA if kind in hf.GEMMAS else {}).get(stem) or PLACES[stem]}.{last}": a}


def weights_of(f, c, adapter=None):
    tensors = dict(f.tensors)
    if adapter:
        for name in [n[:-len(".lora_a")] for n in adapter.tensors if n.endswith(".lora_a")]:
            a, b = (adapter.tensors[f"{name}.lora_{half}"] for half in "ab")
            tensors[name] = tensors[name] + adapter.meta["adapter.lora.alpha"] / len(a) * b @ a
    out = {"model.embed_tokens.weight": tensors.pop("token_embd.weight"),
           "model.norm.weight": tensors.pop("output_norm.weight") - (c["model_type"] in hf.GEMMAS)}
    tensors.pop("rope_freqs.weight", None)
    if "output.weight" in tensors:
        out["lm_head.weight"] = tensors.pop("output.weight")
    for name, a in tensors.items():
        _, layer, rest = name.split(".", 2)
        out.update(place(c, layer, rest, a))
    return out


class Model:
    """Logits of a file's model, under an adapter or none."""

    def __init__(self, path, adapter=None, change=lambda name, a: a):
        f = File(path)
        f.tensors = {name: change(name, a) for name, a in f.tensors.items()}
        self.config = config_of(f)
        self.weights = weights_of(f, self.config, adapter and File(adapter))

    def logits(self, tokens, past=None):
        return hf.forward(self.config, self.weights, tokens, past=past)

    def golden(self, prompt, n):
        """(logits of the prompt, the n ids that follow greedily, the least distance of one of them to the next best)."""
        past, ids, gap = {}, [], np.inf
        logits = self.logits(prompt, past)
        last = logits[-1]
        while len(ids) < n:
            second, best = np.sort(last)[-2:]
            gap = min(gap, best - second)
            ids.append(int(last.argmax()))
            last = self.logits(ids[-1:], past)[-1]
        return logits, ids, gap
