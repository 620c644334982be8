# SPDX-License-Identifier: Apache-2.0
"""Small random Hugging Face folders, one per architecture, and a plain forward pass over them in double precision.

NumPy only: safetensors, config.json and the tokenizer files are written here, independently of the engine. The forward pass follows
transformers' modelling files; it is slow, and keeps keys and values only for who asks for them."""
import json
import os
import struct

import numpy as np

# ---- files ----


def as_stored(a, dtype):
    """The array rounded to what a file of that type can hold: (bytes, values as float64)."""
    a = np.asarray(a, dtype=np.float32)
    if dtype == "F32":
        return a.tobytes(), a.astype(np.float64)
    if dtype == "F16":
        h = a.astype(np.float16)
        return h.tobytes(), h.astype(np.float64)
    bits = a.view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded.tobytes(), (rounded.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def write_safetensors(path, tensors, dtype, pad=True):
    """tensors: name -> array. Returns name -> the values as stored."""
    header, data, values = {"__metadata__": {"format": "pt"}}, b"", {}
    for name, a in tensors.items():
        raw, values[name] = as_stored(a, dtype)
        header[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * ((-len(text)) % 8 if pad else 1 + (-len(text)) % 8)  # without: nothing is aligned
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    return values


def write_weights(folder, tensors, dtype, shards=1, pad=True):
    if shards == 1:
        return write_safetensors(os.path.join(folder, "model.safetensors"), tensors, dtype, pad)
    names, values, weight_map = list(tensors), {}, {}
    for s in range(shards):
        file = f"model-{s + 1:05}-of-{shards:05}.safetensors"
        part = {n: tensors[n] for n in names[s::shards]}
        values.update(write_safetensors(os.path.join(folder, file), part, dtype, pad))
        weight_map.update({n: file for n in part})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": 0}, "weight_map": weight_map}, f)
    return values


# ---- tokenizers ----

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
WORDS = ["the", "in", "er", "an", "th", "he", "on", "re", "hello", "world", "tion"]


def alphabet():
    """GPT-2's: the character that spells each byte."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    out, n = {}, 0
    for b in range(256):
        out[b] = chr(b) if b in keep else chr(256 + n)
        n += b not in keep
    return out


def merges_of(words, first):
    """Merges that build each word from left to right, and the tokens that they make."""
    merges, tokens = [], []
    for w in words:
        left = w[0]
        for c in w[1:]:
            if left + c not in tokens:
                merges.append([left, c])
                tokens.append(left + c)
            left += c
    return merges, [t for t in tokens if t not in first]


def byte_level_tokenizer(pattern, specials, ignore_merges=False, bos=None):
    spell = alphabet()
    vocab = {spell[b]: b for b in range(256)}
    merges, tokens = merges_of(WORDS + [spell[32] + w for w in WORDS], vocab)
    for t in tokens:
        vocab[t] = len(vocab)
    added = [{"id": len(vocab) + i, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, s in enumerate(specials)]
    post = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    if bos:
        at = next(a["id"] for a in added if a["content"] == bos)
        post = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [], "special_tokens": {bos: {"id": bos, "ids": [at], "tokens": [bos]}}}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "post_processor": post,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore_merges, "vocab": vocab, "merges": merges}}


def spm_pieces():
    """(text, score, type) as SentencePiece has them: <unk> <s> </s>, bytes, then pieces by merge, then characters; and the merges
    that transformers makes of them: every way to join two pieces to a third, best first."""
    tokens = merges_of(WORDS + ["\u2581" + w for w in WORDS], [])[1]
    chars = ["\u2581"] + sorted({c for w in WORDS for c in w})
    pieces = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3)] + [(f"<0x{b:02X}>", 0, 6) for b in range(256)]
    pieces += [(t, -float(i), 1) for i, t in enumerate(tokens)]
    pieces += [(c, -float(len(tokens) + i), 1) for i, c in enumerate(chars)]
    known = set(tokens + chars)
    merges = [[t[:i], t[i:]] for t in tokens for i in range(1, len(t)) if t[:i] in known and t[i:] in known]
    return pieces, merges


def spm_style_tokenizer(prefix=True):
    """The same as a tokenizer.json, as transformers converts it."""
    pieces, merges = spm_pieces()
    norms = [{"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]
    if prefix:
        norms.insert(0, {"type": "Prepend", "prepend": "\u2581"})
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                         for i, s in enumerate(["<unk>", "<s>", "</s>"])],
        "normalizer": {"type": "Sequence", "normalizers": norms}, "pre_tokenizer": None,
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                           {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                                                     {"type": "ByteFallback"}, {"type": "Fuse"}] + strip},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": {p[0]: i for i, p in enumerate(pieces)}, "merges": merges}}


def varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def proto_bytes(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def spm_model():
    """tokenizer.model: the same pieces as a protocol buffer."""
    out = b""
    for text, score, kind in spm_pieces()[0]:
        out += proto_bytes(1, proto_bytes(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + varint(3 << 3) + varint(kind))
    trainer = varint(3 << 3) + varint(2) + varint(43 << 3) + varint(-1)
    normalizer = proto_bytes(1, b"identity") + varint(4 << 3) + varint(0)
    return out + proto_bytes(2, trainer) + proto_bytes(3, normalizer)


# ---- models ----

V, D, F = 320, 64, 96
GEMMAS = ("gemma2", "gemma3_text")


def shapes_of(c):
    """HF name -> shape."""
    hd, nq, nk = c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"]
    d, f, kind = c["hidden_size"], c["intermediate_size"], c["model_type"]
    s = {"model.embed_tokens.weight": (c["vocab_size"], d)}
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        s[p + "input_layernorm.weight"] = (d,)
        if kind == "phi3":
            s[p + "self_attn.qkv_proj.weight"] = ((nq + 2 * nk) * hd, d)
        else:
            for name, n in (("q", nq), ("k", nk), ("v", nk)):
                s[p + f"self_attn.{name}_proj.weight"] = (n * hd, d)
                if kind == "qwen2" or c.get("attention_bias"):
                    s[p + f"self_attn.{name}_proj.bias"] = (n * hd,)
        s[p + "self_attn.o_proj.weight"] = (d, nq * hd)
        if c.get("attention_bias"):
            s[p + "self_attn.o_proj.bias"] = (d,)
        if kind in ("qwen3", "qwen3_moe", "gemma3_text"):
            s[p + "self_attn.q_norm.weight"] = s[p + "self_attn.k_norm.weight"] = (hd,)
        s[p + "post_attention_layernorm.weight"] = (d,)
        if kind in GEMMAS:
            s[p + "pre_feedforward_layernorm.weight"] = s[p + "post_feedforward_layernorm.weight"] = (d,)
        if kind == "mixtral":
            s[p + "block_sparse_moe.gate.weight"] = (c["num_local_experts"], d)
            for e in range(c["num_local_experts"]):
                q = p + f"block_sparse_moe.experts.{e}."
                s[q + "w1.weight"], s[q + "w2.weight"], s[q + "w3.weight"] = (f, d), (d, f), (f, d)
        elif kind == "qwen3_moe":
            x = c["moe_intermediate_size"]
            s[p + "mlp.gate.weight"] = (c["num_experts"], d)
            for e in range(c["num_experts"]):
                q = p + f"mlp.experts.{e}."
                s[q + "gate_proj.weight"], s[q + "up_proj.weight"], s[q + "down_proj.weight"] = (x, d), (x, d), (d, x)
        elif kind == "phi3":
            s[p + "mlp.gate_up_proj.weight"], s[p + "mlp.down_proj.weight"] = (2 * f, d), (d, f)
        else:
            s[p + "mlp.gate_proj.weight"], s[p + "mlp.up_proj.weight"], s[p + "mlp.down_proj.weight"] = (f, d), (f, d), (d, f)
    s["model.norm.weight"] = (d,)
    if not c["tie_word_embeddings"]:
        s["lm_head.weight"] = (c["vocab_size"], d)
    return s


def random_weights(c, seed):
    rng = np.random.default_rng(seed)
    out = {}
    for name, shape in shapes_of(c).items():
        if name.endswith("norm.weight"):
            out[name] = rng.normal(0 if c["model_type"] in GEMMAS else 1, 0.2, shape)
        elif name.endswith(".bias"):
            out[name] = rng.normal(0, 0.3, shape)
        else:
            out[name] = rng.normal(0, (0.5 if "embed" in name else 1.2 / np.sqrt(shape[-1])), shape)
    return out


# ---- the forward pass ----


def inverse_frequencies(c, local, length):
    """(radians per position, factor on cosines and sines), by transformers' modeling_rope_utils."""
    n = int(c["head_dim"] * c.get("partial_rotary_factor", 1.0))
    base = c.get("rope_local_base_freq", 10000.0) if local else c["rope_theta"]
    inv = base ** (-np.arange(0, n, 2, dtype=np.float64) / n)
    s = None if local else c.get("rope_scaling")
    if not s:
        return inv, 1.0
    kind = s.get("rope_type", s.get("type"))
    if kind == "linear":
        return inv / s["factor"], 1.0
    if kind == "llama3":
        old, wave = s["original_max_position_embeddings"], 2 * np.pi / inv
        smooth = (old / wave - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
        mixed = (1 - smooth) * inv / s["factor"] + smooth * inv
        out = np.where(wave > old / s["low_freq_factor"], inv / s["factor"], mixed)
        return np.where(wave < old / s["high_freq_factor"], inv, out), 1.0
    if kind == "yarn":
        old = s["original_max_position_embeddings"]

        def pair(turns):
            return n * np.log(old / (turns * 2 * np.pi)) / (2 * np.log(base))

        low, high = max(np.floor(pair(s.get("beta_fast", 32))), 0), min(np.ceil(pair(s.get("beta_slow", 1))), n - 1)
        ramp = np.clip((np.arange(n // 2) - low) / max(high - low, 0.001), 0, 1)
        factor = s.get("attention_factor") or 0.1 * np.log(s["factor"]) + 1
        return inv / s["factor"] * ramp + inv * (1 - ramp), factor
    old = c["original_max_position_embeddings"]
    factors = np.array(s["long_factor"] if length > old else s["short_factor"], dtype=np.float64)
    scale = c["max_position_embeddings"] / old
    return inv / factors, np.sqrt(1 + np.log(scale) / np.log(old)) if scale > 1 else 1.0


def rms_norm(x, w, eps, plus_one):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps) * (w + 1 if plus_one else w)


def rotate(x, inv, factor, first):
    """x [T, heads, head_dim] from position `first` on: the first 2 * len(inv) elements of each head, in halves."""
    n = len(inv)
    angle = np.arange(first, first + x.shape[0])[:, None] * inv[None]
    cos, sin = (np.cos(angle) * factor)[:, None], (np.sin(angle) * factor)[:, None]
    a, b = x[..., :n], x[..., n:2 * n]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * n:]], -1)


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def window_of(c, layer):
    kind, window = c["model_type"], c.get("sliding_window")
    if kind == "gemma2":
        return window if layer % 2 == 0 else None
    if kind == "gemma3_text":
        return window if layer % 6 != 5 else None
    return window if kind in ("mistral", "mixtral", "phi3") else None


def attention(c, w, l, h, length, seen, past):
    hd, nq, nk, t = c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"], len(h)
    p = f"model.layers.{l}.self_attn."
    gemma = c["model_type"] in GEMMAS
    for x in ("qkv",) if c["model_type"] == "phi3" else "qkv":
        seen(p + x + "_proj", h)
    if c["model_type"] == "phi3":
        q, k, v = np.split(h @ w[p + "qkv_proj.weight"].T, [nq * hd, (nq + nk) * hd], -1)
    else:
        q, k, v = (h @ w[p + f"{x}_proj.weight"].T + w.get(p + f"{x}_proj.bias", 0) for x in "qkv")
    q, k, v = q.reshape(t, nq, hd), k.reshape(t, nk, hd), v.reshape(t, nk, hd)
    if p + "q_norm.weight" in w:
        q = rms_norm(q, w[p + "q_norm.weight"], c["rms_norm_eps"], gemma)
        k = rms_norm(k, w[p + "k_norm.weight"], c["rms_norm_eps"], gemma)
    window = window_of(c, l)
    inv, factor = inverse_frequencies(c, c["model_type"] == "gemma3_text" and window, length)
    first = len(past[l][0]) if l in past else 0
    q, k = rotate(q, inv, factor, first), rotate(k, inv, factor, first)
    if first:
        k, v = (np.concatenate(pair) for pair in zip(past[l], (k, v)))
    past[l] = k, v
    k, v = np.repeat(k, nq // nk, 1), np.repeat(v, nq // nk, 1)
    scores = q.swapaxes(0, 1) @ k.transpose(1, 2, 0) * (c["query_pre_attn_scalar"] if gemma else hd) ** -0.5
    cap = c.get("attn_logit_softcapping")
    if cap:
        scores = np.tanh(scores / cap) * cap
    i, j = np.arange(first, first + t)[:, None], np.arange(first + t)[None]
    visible = (j <= i) if not window else (j <= i) & (j > i - window)
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out = (weights @ v.swapaxes(0, 1)).swapaxes(0, 1).reshape(t, nq * hd)
    seen(p + "o_proj", out)
    return out @ w[p + "o_proj.weight"].T + w.get(p + "o_proj.bias", 0)


def feed_forward(c, w, l, h, seen):
    kind, p = c["model_type"], f"model.layers.{l}."
    if kind in ("mixtral", "qwen3_moe"):
        mixtral = kind == "mixtral"
        block = p + ("block_sparse_moe." if mixtral else "mlp.")
        gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
        router = h @ w[block + "gate.weight"].T
        seen(block + "gate", h)
        prob = np.exp(router - router.max(-1, keepdims=True))
        prob /= prob.sum(-1, keepdims=True)
        out = np.zeros_like(h)
        for t in range(len(h)):
            top = np.argsort(-prob[t], kind="stable")[:c["num_experts_per_tok"]]
            for e in top:
                q = block + f"experts.{e}."
                hidden = silu(h[t] @ w[q + gate + ".weight"].T) * (h[t] @ w[q + up + ".weight"].T)
                seen(q + gate, h[t:t + 1])
                seen(q + up, h[t:t + 1])
                seen(q + down, hidden[None])
                y = hidden @ w[q + down + ".weight"].T
                out[t] += y * prob[t][e] / prob[t][top].sum()
        return out
    for x in ("gate_up",) if kind == "phi3" else ("gate", "up"):
        seen(p + f"mlp.{x}_proj", h)
    if kind == "phi3":
        g, u = np.split(h @ w[p + "mlp.gate_up_proj.weight"].T, 2, -1)
    else:
        g, u = h @ w[p + "mlp.gate_proj.weight"].T, h @ w[p + "mlp.up_proj.weight"].T
    hidden = (gelu(g) if kind in GEMMAS else silu(g)) * u
    seen(p + "mlp.down_proj", hidden)
    return hidden @ w[p + "mlp.down_proj.weight"].T


def forward(c, w, tokens, length=None, seen=lambda name, rows: None, past=None):
    """Logits [T, V]. `length` chooses LongRoPE's factors; the whole context by default. seen(name, x [n, k]): what matrix `name`
    of a layer is multiplied with. past {layer: (keys, values)}: of the tokens before these, which stand first; these are added to it."""
    past = {} if past is None else past
    gemma, eps = c["model_type"] in GEMMAS, c["rms_norm_eps"]
    length = length or c["max_position_embeddings"]
    x = w["model.embed_tokens.weight"][tokens]
    if gemma:
        x = x * np.sqrt(c["hidden_size"])
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."

        def norm(x, name):
            return rms_norm(x, w[p + name + ".weight"], eps, gemma)

        a = attention(c, w, l, norm(x, "input_layernorm"), length, seen, past)
        if gemma:
            x = x + norm(a, "post_attention_layernorm")
            x = x + norm(feed_forward(c, w, l, norm(x, "pre_feedforward_layernorm"), seen), "post_feedforward_layernorm")
        else:
            x = x + a
            x = x + feed_forward(c, w, l, norm(x, "post_attention_layernorm"), seen)
    x = rms_norm(x, w["model.norm.weight"], eps, gemma)
    logits = x @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T
    cap = c.get("final_logit_softcapping")
    return np.tanh(logits / cap) * cap if cap else logits
