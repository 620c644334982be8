# SPDX-License-Identifier: Apache-2.0
"""Seeds of the fuzz target adapt: one small adapter of every kind that the readers take, as adapt.c wants its inputs, so that fuzzing begins behind
the headers. All are whole: what is wrong with an adapter, mutations find out. Values are small numbers that differ.

usage: adapt_seeds.py FOLDER"""
import json
import os
import struct
import sys

F32, F16, Q4_0, Q8_0, BF16 = 0, 1, 2, 8, 30  # GGUF's types of tensors
U32, FLOAT, STRING = 4, 6, 8  # and of values


def count(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def numbers(n):
    return [(i * 7 % 23) / 16 - 0.6875 for i in range(n)]


def encoded(dtype, dims):
    values = numbers(count(dims))
    if dtype == F32:
        return struct.pack(f"<{len(values)}f", *values)
    if dtype == F16:
        return struct.pack(f"<{len(values)}e", *values)
    if dtype == BF16:
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    codes = bytes(range(32)) if dtype == Q8_0 else bytes(range(16, 32))
    return (struct.pack("<e", 0.25) + codes) * (len(values) // 32)  # blocks of 32


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def gguf(*tensors, **more):
    """Tensors are (name, dims, dtype); of the keys, some may be changed, or left out as None."""
    meta = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": 4.0, **more}
    meta = {k: v for k, v in meta.items() if v is not None}
    keys = b"".join(text(k) + (struct.pack("<I", STRING) + text(v) if isinstance(v, str) else struct.pack("<II", U32, v) if isinstance(v, int)
                               else struct.pack("<If", FLOAT, v)) for k, v in meta.items())
    step, listed, data = meta.get("general.alignment", 32), b"", b""
    for name, dims, dtype in tensors:
        listed += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, dtype, len(data))
        data += encoded(dtype, dims)
        data += bytes(-len(data) % step)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)) + keys + listed
    return head + bytes(-len(head) % step) + data


def pair(name, k=4, n=8, rank=2, dtype=F32, experts=()):
    return (name + ".lora_a", (k, rank, *experts), dtype), (name + ".lora_b", (rank, n, *experts), dtype)


def peft(config, *tensors):
    """A configuration, a NUL, and a safetensors file: tensors are (name, dims as GGUF has them[, dtype])."""
    names, header, data = {F32: "F32", F16: "F16", BF16: "BF16"}, {"__metadata__": {"format": "pt"}}, b""
    for name, dims, dtype in tensors:
        values = encoded(dtype, dims)
        header["base_model.model." + name] = {"dtype": names[dtype], "shape": dims[::-1], "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    listed = json.dumps(header, separators=(",", ":")).encode()
    listed += b" " * (-len(listed) % 8)
    said = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, **config}
    return json.dumps(said, separators=(",", ":")).encode() + b"\0" + struct.pack("<Q", len(listed)) + listed + data


def halves(name, k=4, n=8, rank=2, dtype=F32):
    return (name + ".lora_A.weight", (k, rank), dtype), (name + ".lora_B.weight", (rank, n), dtype)


Q, UP, EXPERTS = "blk.0.attn_q.weight", "blk.0.ffn_up.weight", "blk.0.ffn_up_exps.weight"
TABLE = ("token_embd.weight.lora_a", (2, 6), F32), ("token_embd.weight.lora_b", (2, 4), F32)  # of 6 tokens, 4 wide
MODULES = ["layers.0.q", "layers.0.up", "layers.1.up"]
SEEDS = {
    "gguf": gguf(*pair(Q), *pair(UP, rank=3), **{"weft.adapter.base_mark": "0123456789abcdef"}),
    "gguf-embedding": gguf(*TABLE, *pair("output.weight"), **{"adapter.lora.alpha": None, "general.alignment": 8}),
    "gguf-dora": gguf(*pair(Q), (Q + ".lora_magnitude", (8,), F32), (Q + ".lora_scale", (1,), F32)),
    "gguf-dora-embedding": gguf(*TABLE, ("token_embd.weight.lora_magnitude", (4,), F32)),
    "gguf-experts": gguf(*pair(EXPERTS, experts=(3,))),
    "gguf-dora-experts": gguf(*pair(EXPERTS, experts=(3,)), (EXPERTS + ".lora_magnitude", (8, 3), F32)),
    "gguf-types": gguf(
        *pair(Q, dtype=F16), *pair(UP, dtype=BF16), *pair("a", 32, 2, 32, Q8_0), *pair("b", 32, 2, 32, Q4_0)
    ),
    "peft": peft({"target_modules": ["q", "up"], "bias": "none"}, *halves(MODULES[0]), *halves(MODULES[1], dtype=BF16)),
    "peft-dora": peft({"use_dora": True}, *halves("q"), ("q.lora_magnitude_vector", (8,), F16)),
    "peft-rslora": peft(
        {"use_rslora": True, "fan_in_fan_out": False, "init_lora_weights": True, "modules_to_save": None}, *halves("up")
    ),
    "peft-embedding": peft(
        {"target_modules": "all-linear"},
        ("table.lora_embedding_A", (6, 2), F32),
        ("table.lora_embedding_B", (2, 4), F32),
    ),
    "peft-base-beside": peft(
        {},
        ("table.lora_embedding_A", (6, 2), F32),
        ("table.lora_embedding_B", (2, 4), F32),
        ("table.base_layer.weight", (4, 6), BF16),
    ),
    "peft-experts": peft(
        {"alpha_pattern": {"e1.up": 6}, "rank_pattern": {"e2.up": 3}},
        *halves("e0.up"),
        *halves("e1.up"),
        *halves("e2.up", rank=3),
    ),
    "peft-dora-experts": peft(
        {"use_dora": True},
        *halves("e0.up"),
        ("e0.up.lora_magnitude_vector", (8,), F32),
        *halves("e2.up"),
        ("e2.up.lora_magnitude_vector", (8,), F32),
    ),
    "peft-patterns": peft(
        {"rank_pattern": {r"layers\.1\.(up|down)": 3, "^q": 4}, "alpha_pattern": {"0.up": 1.5}},
        *halves(MODULES[0]),
        *halves(MODULES[1]),
        *halves(MODULES[2], rank=3),
    ),
    "peft-selection": peft(
        {
            "target_modules": r"model\.layers\.[0-9]+\.(q|up)",
            "exclude_modules": ["down"],
            "layers_to_transform": [0, 2],
            "layers_pattern": ["layers"],
        },
        *halves("model." + MODULES[0]),
        *halves("model." + MODULES[1]),
    ),
}

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, data in SEEDS.items():
        with open(os.path.join(sys.argv[1], name), "wb") as f:
            f.write(data)
