# SPDX-License-Identifier: Apache-2.0
"""Reads GGUF files independently of the engine: metadata, tensors as bytes, and those of F32 as arrays. NumPy only."""
import struct

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY, F32 = 8, 9, 0


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, n = self.take("I"), self.take("Q")
            return [self.value(kind) for _ in range(n)]
        return self.take(SCALARS[kind])


def parse(data):
    """(metadata, {key: type}, [(name, shape, type, first byte)]); a shape's slowest dimension is its first."""
    c = Cursor(data)
    assert c.data[:4] == b"GGUF"
    c.at = 4
    version, n_tensors, n_meta = c.take("I"), c.take("Q"), c.take("Q")
    assert version in (2, 3)
    meta, kinds, places = {}, {}, []
    for _ in range(n_meta):
        key = c.string()
        kinds[key] = c.take("I")
        meta[key] = c.value(kinds[key])
    for _ in range(n_tensors):
        name = c.string()
        shape = [c.take("Q") for _ in range(c.take("I"))]
        places.append((name, shape[::-1], c.take("I"), c.take("Q")))
    align = meta.get("general.alignment", 32)
    begin = (c.at + align - 1) // align * align
    return meta, kinds, [(name, shape, kind, begin + offset) for name, shape, kind, offset in places]


def read(path):
    """(metadata, {name: array}) of what is F32; an array's shape is the file's, slowest dimension first."""
    with open(path, "rb") as f:
        data = f.read()
    meta, _, places = parse(data)
    return meta, {name: np.frombuffer(data, "<f4", int(np.prod(shape)), at).reshape(shape) for name, shape, kind, at in places if kind == F32}
