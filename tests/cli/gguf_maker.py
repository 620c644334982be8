# SPDX-License-Identifier: Apache-2.0
"""A small GGUF file in which everything can be wrong: a model whose parts a test changes before its bytes are made. Types are the
format's numbers: U8 0, I32 5, U32 4, F32 6, BOOL 7, STRING 8, ARRAY 9, U64 10."""
import json
import math
import os
import struct

U8, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 6, 7, 8, 9, 10
PACK = {U8: "<B", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q"}
D, FF, HEADS, KV_HEADS, LAYERS, VOCAB = 32, 64, 4, 2, 2, 300
TYPE_F32, TYPE_F16 = 0, 1


class Raw(bytes):
    """Bytes that stand in the file as they are, in the place of a value or a string."""


def string(text):
    if isinstance(text, Raw):
        return bytes(text)
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text)) + text


def value(kind, v):
    if isinstance(v, Raw):
        return bytes(v)
    if kind == STRING:
        return string(v)
    if kind == ARRAY:
        element, items = v
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, item) for item in items)
    return struct.pack(PACK[kind], v)


def file(meta, tensors):
    """The bytes of a file as it should be: meta is {key: (type, value)}, tensors [(name, dims, type, bytes)], the dims fastest first."""
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)), b""
    for key, (kind, v) in meta.items():
        head += string(key) + struct.pack("<I", kind) + value(kind, v)
    for name, dims, kind, raw in tensors:
        head += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    return head + b"\0" * (-len(head) % 32) + data


class Tensor:
    def __init__(self, name, dims, kind=TYPE_F32):
        self.name, self.dims, self.kind, self.offset = name, list(dims), kind, None

    def size(self):
        n = 1
        for d in self.dims:
            n *= d
        return n * (2 if self.kind == TYPE_F16 else 4)


class Model:
    """A llama of two layers with a vocabulary of bytes; `bytes(model)` is the file."""

    def __init__(self):
        self.magic, self.version, self.n_meta, self.n_tensors, self.alignment, self.cut, self.tail = b"GGUF", 3, None, None, 32, None, b""
        tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581"] + [chr(97 + i % 26) * (1 + i // 26) for i in range(VOCAB - 260)]
        self.meta = {
            "general.architecture": (STRING, "llama"), "general.name": (STRING, "hostile"), "llama.block_count": (U32, LAYERS),
            "llama.context_length": (U32, 64), "llama.embedding_length": (U32, D), "llama.feed_forward_length": (U32, FF),
            "llama.attention.head_count": (U32, HEADS), "llama.attention.head_count_kv": (U32, KV_HEADS),
            "llama.attention.layer_norm_rms_epsilon": (F32, 1e-5), "llama.rope.freq_base": (F32, 10000.0),
            "tokenizer.ggml.model": (STRING, "llama"), "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
            "tokenizer.ggml.scores": (ARRAY, (F32, [0.0] * VOCAB)),
            "tokenizer.ggml.token_type": (ARRAY, (I32, [2, 3, 3] + [6] * 256 + [1] * (VOCAB - 259))),
            "tokenizer.ggml.bos_token_id": (U32, 1), "tokenizer.ggml.eos_token_id": (U32, 2),
        }
        self.more_meta = []  # [(key, type, value)], behind the others: keys may repeat
        kv = D // HEADS * KV_HEADS
        shapes = {"token_embd": (D, VOCAB), "output_norm": (D,), "output": (D, VOCAB)}
        for layer in range(LAYERS):
            shapes.update({f"blk.{layer}.{name}": dims for name, dims in
                           (("attn_norm", (D,)), ("attn_q", (D, D)), ("attn_k", (D, kv)), ("attn_v", (D, kv)), ("attn_output", (D, D)),
                            ("ffn_norm", (D,)), ("ffn_gate", (D, FF)), ("ffn_up", (D, FF)), ("ffn_down", (FF, D)))})
        self.values = {}  # {(tensor's name, element): number}, of F32 ones
        self.tensors = [Tensor(name + ".weight", dims) for name, dims in shapes.items()]

    def tensor(self, name):
        return next(t for t in self.tensors if t.name == name)

    def add(self, name, dims, kind=TYPE_F32):
        self.tensors.append(Tensor(name, dims, kind))
        return self.tensors[-1]

    def remove(self, name):
        self.tensors.remove(self.tensor(name))

    def __bytes__(self):
        entries = [(key, *pair) for key, pair in self.meta.items()] + self.more_meta
        head = self.magic + struct.pack("<IQQ", self.version, len(self.tensors) if self.n_tensors is None else self.n_tensors,
                                        len(entries) if self.n_meta is None else self.n_meta)
        for key, kind, v in entries:
            head += string(key) + struct.pack("<I", kind) + value(kind, v)
        at, begin = 0, {}
        for t in self.tensors:
            begin[t.name] = at
            head += string(t.name) + struct.pack("<I", len(t.dims)) + b"".join(struct.pack("<Q", d & (2 ** 64 - 1)) for d in t.dims)
            head += struct.pack("<IQ", t.kind, at if t.offset is None else t.offset)
            at += -(-t.size() // 32) * 32 if t.offset is None else 0
        head += b"\0" * (-len(head) % self.alignment)
        data = bytearray(at)
        for i in range(0, at, 4):  # small numbers, never zero
            struct.pack_into("<f", data, i, ((i // 4 * 37) % 101 - 50) / 400 + 0.001)
        for (name, element), number in self.values.items():
            struct.pack_into("<f", data, begin[name] + 4 * element, number)
        return (head + bytes(data) + self.tail)[:self.cut]


def folder_of_weights(folder, shard="model.safetensors", values=None):
    """A Hugging Face folder of one layer without a tokenizer, with numbers at the elements that {(tensor's name, element): number} names;
    an index tells of a shard of another name. Returns the folder."""
    d, header, data = 32, {}, bytearray()
    os.makedirs(folder, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 40,
        "hidden_size": d,
        "intermediate_size": d,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
    }
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    shapes = {"model.embed_tokens.weight": [40, d], "model.norm.weight": [d], "lm_head.weight": [40, d]}
    for name in (
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
        "input_layernorm",
        "post_attention_layernorm",
    ):
        shapes[f"model.layers.0.{name}.weight"] = [d] if name.endswith("norm") else [d, d]
    for name, shape in shapes.items():
        numbers = [0.25] * math.prod(shape)
        for (tensor, element), number in (values or {}).items():
            if tensor == name:
                numbers[element] = number
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(numbers)]}
        data += struct.pack(f"<{len(numbers)}f", *numbers)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, shard), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    if shard != "model.safetensors":
        with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
            json.dump({"weight_map": {name: shard for name in shapes}}, f)
    return folder
