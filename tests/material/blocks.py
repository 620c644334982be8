# SPDX-License-Identifier: Apache-2.0
"""Every type of weights in NumPy: rows to blocks of bytes and back, written from the formats' layouts, independently of the engine.

An encoder tries few scales and keeps the nearest: what a file holds need not be the best that its type can do. All sizes are of a whole
array [blocks, bytes] or [blocks, values]; half floats are little-endian."""
import numpy as np

F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, BF16 = 0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 30
TABLE = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)  # IQ4's codes


# ---- parts of blocks ----

def half(b):
    """Two bytes of each block as float64 [blocks, 1]."""
    return np.ascontiguousarray(b).view("<f2").astype(np.float64)


def as_half(x):
    """x [blocks, 1] as bytes [blocks, 2]."""
    return np.ascontiguousarray(x, "<f2").view(np.uint8)


def rounded(x):
    return x.astype(np.float16).astype(np.float32)


def nibbles(b):
    """The low halves of the bytes, then the high ones."""
    return np.concatenate([b & 15, b >> 4], -1)


def as_nibbles(q):
    """The inverse: q [..., 2n] to [..., n]."""
    low, high = np.split(q, 2, -1)
    return low | high << 4


def bits(b):
    """Bit i of each block's bytes, as a number of 8 * bytes bits, is value i."""
    return np.unpackbits(b, axis=-1, bitorder="little")


def as_bits(q):
    return np.packbits(q, axis=-1, bitorder="little")


def planes(b, width, n):
    """Fields of `width` bits: the lowest of all bytes, then the next, n in all: [..., bytes] to [..., n * bytes]."""
    return np.concatenate([b >> width * i & (1 << width) - 1 for i in range(n)], -1)


def as_planes(q, width, n):
    return np.bitwise_or.reduce([part << width * i for i, part in enumerate(np.split(q, n, -1))])


def groups(b, size):
    return b.reshape(len(b), -1, size)


def six_bits(s):
    """Q4_K's and Q5_K's 12 bytes: 8 scales and 8 minima."""
    a, b, c = np.split(s, 3, -1)
    return np.concatenate([a & 63, c & 15 | a >> 6 << 4], -1), np.concatenate([b & 63, c >> 4 | b >> 6 << 4], -1)


def as_six_bits(scale, low):
    (s0, s1), (m0, m1) = np.split(scale, 2, -1), np.split(low, 2, -1)
    return np.concatenate([s0 | s1 >> 4 << 6, m0 | m1 >> 4 << 6, s1 & 15 | (m1 & 15) << 4], -1)


# ---- decoders: bytes [blocks, size] to values [blocks, n] ----

def q4_0(b):
    return half(b[:, :2]) * (nibbles(b[:, 2:]) - 8.0)


def q4_1(b):
    return half(b[:, :2]) * nibbles(b[:, 4:]) + half(b[:, 2:4])


def q5_0(b):
    return half(b[:, :2]) * ((nibbles(b[:, 6:]) | bits(b[:, 2:6]) << 4) - 16.0)


def q5_1(b):
    return half(b[:, :2]) * (nibbles(b[:, 8:]) | bits(b[:, 4:8]) << 4) + half(b[:, 2:4])


def q8_0(b):
    return half(b[:, :2]) * b[:, 2:].view(np.int8)


def q2_k(b):
    q = groups(planes(groups(b[:, 16:80], 32), 2, 4).reshape(len(b), -1), 16)
    scale, low = half(b[:, 80:82]) * (b[:, :16] & 15), half(b[:, 82:84]) * (b[:, :16] >> 4)
    return (scale[..., None] * q - low[..., None]).reshape(len(b), -1)


def q3_k(b):
    q = planes(groups(b[:, 32:96], 32), 2, 4).reshape(len(b), -1) + 4.0 * planes(b[:, :32], 1, 8) - 4
    scale = (nibbles(b[:, 96:104]) | planes(b[:, 104:108], 2, 4) << 4) - 32.0
    return (half(b[:, 108:110]) * scale)[..., None].repeat(16, -1).reshape(len(b), -1) * q


def with_minima(b, q):
    scale, low = six_bits(b[:, 4:16])
    return ((half(b[:, :2]) * scale)[..., None] * groups(q, 32) - (half(b[:, 2:4]) * low)[..., None]).reshape(len(b), -1)


def q4_k(b):
    return with_minima(b, nibbles(groups(b[:, 16:], 32)))


def q5_k(b):
    return with_minima(b, nibbles(groups(b[:, 48:], 32)).reshape(len(b), -1) | planes(b[:, 16:48], 1, 8) << 4)


def q6_k(b):
    low = nibbles(groups(b[:, :128], 64)).reshape(len(b), -1)
    q = (low | planes(groups(b[:, 128:192], 32), 2, 4).reshape(len(b), -1) << 4) - 32.0
    return (half(b[:, 208:]) * b[:, 192:208].view(np.int8))[..., None].repeat(16, -1).reshape(len(b), -1) * q


def iq4_nl(b):
    return half(b[:, :2]) * TABLE[nibbles(b[:, 2:])]


def iq4_xs(b):
    low = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], -1).reshape(len(b), -1)
    high = np.ascontiguousarray(b[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    scales = (half(b[:, :2]) * ((low | high << 4) - 32.0))[..., None].repeat(32, -1).reshape(len(b), -1)
    return scales * TABLE[nibbles(groups(b[:, 8:], 16))].reshape(len(b), -1)


# ---- encoders: values [blocks, n], float32, to bytes ----

def nearest_codes(x, scale, codes):
    """Indices of the codes, IQ4's or whole numbers in a row, that times scale [..., 1] are nearest to x; a scale of 0 takes the code nearest to 0."""
    y = np.divide(x, scale, out=np.zeros_like(x), where=scale != 0)
    if codes is TABLE:
        return np.searchsorted((codes[1:] + codes[:-1]) / 2, y).astype(np.uint8)
    return np.rint(np.clip(y - codes[0], 0, len(codes) - 1)).astype(np.uint8)


def squares(x):
    return np.square(x).sum(-1, keepdims=True)


def fit(x, codes):
    """A scale per row so that scale * codes come near: the largest value on either end of the codes, then least squares."""
    largest = np.take_along_axis(x, np.abs(x).argmax(-1)[..., None], -1)
    best, error = np.zeros_like(largest), squares(x)
    for end in (codes[0], codes[-1]):
        v = codes[nearest_codes(x, largest / end, codes)]
        power = squares(v)
        scale = np.divide((x * v).sum(-1, keepdims=True), power, out=np.zeros_like(power), where=power > 0)
        e = squares(x - scale * v)
        best, error = np.where(e < error, scale, best), np.minimum(e, error)
    return best


def fit_line(x, top, lowest=None):
    """(scale, minimum) so that minimum + scale * 0..top comes near; a minimum of at most `lowest`."""
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    best, error = (np.zeros_like(low), low), np.full_like(low, np.inf)
    mid = (low + high) / 2
    for a in (1.0, 0.9):
        for b in (1.0, 0.9):
            m, h = mid + (low - mid) * a, mid + (high - mid) * b
            if lowest is not None:
                m = np.minimum(m, lowest)
            scale = np.maximum(h - m, 0) / top
            e = squares(x - m - scale * line_codes(x, scale, m, top))
            best, error = tuple(np.where(e < error, new, old) for new, old in zip((scale, m), best)), np.minimum(e, error)
    return best


def line_codes(x, scale, low, top):
    return np.rint(np.clip(np.divide(x - low, scale, out=np.zeros_like(x), where=scale != 0), 0, top)).astype(np.uint8)


def linear(low, high):
    return np.arange(low, high + 1, dtype=np.float32)


def as_q4_0(x):
    d = rounded(fit(x, linear(-8, 7)))
    return np.concatenate([as_half(d), as_nibbles(nearest_codes(x, d, linear(-8, 7)))], -1)


def as_q4_1(x):
    d, m = map(rounded, fit_line(x, 15))
    return np.concatenate([as_half(d), as_half(m), as_nibbles(line_codes(x, d, m, 15))], -1)


def as_q5_0(x):
    d = rounded(fit(x, linear(-16, 15)))
    q = nearest_codes(x, d, linear(-16, 15))
    return np.concatenate([as_half(d), as_bits(q >> 4), as_nibbles(q & 15)], -1)


def as_q5_1(x):
    d, m = map(rounded, fit_line(x, 31))
    q = line_codes(x, d, m, 31)
    return np.concatenate([as_half(d), as_half(m), as_bits(q >> 4), as_nibbles(q & 15)], -1)


def as_q8_0(x):
    d = rounded(np.abs(x).max(-1, keepdims=True) / 127)
    return np.concatenate([as_half(d), (nearest_codes(x, d, linear(-127, 127)) - 127).view(np.uint8)], -1)


def super_scales(scale, top):
    """A half float for the block, and what times it is nearest to each scale [blocks, n], at most `top` in size."""
    d = rounded(np.abs(scale).max(-1, keepdims=True) / top)
    return d, np.rint(np.divide(scale, d, out=np.zeros_like(scale), where=d != 0)).clip(-top, top)


def line_blocks(x, size, top, scale_top):
    """(d, dmin, scales, minima, codes) of blocks whose groups of `size` are d * scale * code - dmin * minimum."""
    x = groups(x, size)
    scale, low = (a[..., 0] for a in fit_line(x, top, 0))
    (d, s), (dm, m) = super_scales(scale, scale_top), super_scales(-low, scale_top)
    q = line_codes(x, (d * s)[..., None], -(dm * m)[..., None], top).reshape(len(x), -1)
    return d, dm, s.astype(np.uint8), m.astype(np.uint8), q


def as_q2_k(x):
    d, dm, s, m, q = line_blocks(x, 16, 3, 15)
    return np.concatenate([s | m << 4, as_planes(groups(q, 128), 2, 4).reshape(len(x), -1), as_half(d), as_half(dm)], -1)


def as_q4_k(x):
    d, dm, s, m, q = line_blocks(x, 32, 15, 63)
    return np.concatenate([as_half(d), as_half(dm), as_six_bits(s, m), as_nibbles(groups(q, 64)).reshape(len(x), -1)], -1)


def as_q5_k(x):
    d, dm, s, m, q = line_blocks(x, 32, 31, 63)
    low = as_nibbles(groups(q & 15, 64)).reshape(len(x), -1)
    return np.concatenate([as_half(d), as_half(dm), as_six_bits(s, m), as_planes(q >> 4, 1, 8), low], -1)


def scaled_blocks(x, size, codes, top):
    """(d, scales, codes' indices) of blocks whose groups of `size` are d * scale * code, the scale of either sign."""
    x = groups(x, size)
    d, s = super_scales(fit(x, codes)[..., 0], top)
    return d, s, nearest_codes(x, (d * s)[..., None], codes).reshape(len(x), -1)


def as_q3_k(x):
    d, s, q = scaled_blocks(x, 16, linear(-4, 3), 31)
    s = (s + 32).astype(np.uint8)
    scales = np.concatenate([as_nibbles(s & 15), as_planes(s >> 4, 2, 4)], -1)
    return np.concatenate([as_planes(q >> 2, 1, 8), as_planes(groups(q & 3, 128), 2, 4).reshape(len(x), -1), scales, as_half(d)], -1)


def as_q6_k(x):
    d, s, q = scaled_blocks(x, 16, linear(-32, 31), 127)
    low, high = as_nibbles(groups(q & 15, 128)).reshape(len(x), -1), as_planes(groups(q >> 4, 128), 2, 4).reshape(len(x), -1)
    return np.concatenate([low, high, s.astype(np.int8).view(np.uint8), as_half(d)], -1)


def as_iq4_nl(x):
    d = rounded(fit(x, TABLE))
    return np.concatenate([as_half(d), as_nibbles(nearest_codes(x, d, TABLE))], -1)


def as_iq4_xs(x):
    d, s, q = scaled_blocks(x, 32, TABLE, 31)
    s = (s + 32).astype(np.uint16)
    high = (s >> 4 << np.arange(0, 16, 2, dtype=np.uint16)).sum(-1, keepdims=True).astype("<u2").view(np.uint8)
    low = (s[:, ::2] & 15 | (s[:, 1::2] & 15) << 4).astype(np.uint8)
    return np.concatenate([as_half(d), high, low, as_nibbles(groups(q, 32)).reshape(len(x), -1)], -1)


# ---- whole arrays ----

# type: (values in a block, bytes in it, decoder, encoder)
TYPES = {Q4_0: (32, 18, q4_0, as_q4_0), Q4_1: (32, 20, q4_1, as_q4_1), Q5_0: (32, 22, q5_0, as_q5_0), Q5_1: (32, 24, q5_1, as_q5_1),
         Q8_0: (32, 34, q8_0, as_q8_0), Q2_K: (256, 84, q2_k, as_q2_k), Q3_K: (256, 110, q3_k, as_q3_k), Q4_K: (256, 144, q4_k, as_q4_k),
         Q5_K: (256, 176, q5_k, as_q5_k), Q6_K: (256, 210, q6_k, as_q6_k), IQ4_NL: (32, 18, iq4_nl, as_iq4_nl), IQ4_XS: (256, 136, iq4_xs, as_iq4_xs)}


def size(kind, n):
    """Bytes of n values."""
    return n * 4 if kind == F32 else n * 2 if kind in (F16, BF16) else n // TYPES[kind][0] * TYPES[kind][1]


def decode(kind, raw):
    """Exact, as float64, flat."""
    if kind in (F32, F16):
        return np.frombuffer(raw, "<f4" if kind == F32 else "<f2").astype(np.float64)
    if kind == BF16:
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return TYPES[kind][2](np.frombuffer(raw, np.uint8).reshape(-1, TYPES[kind][1])).astype(np.float64).reshape(-1)


def encode(kind, x):
    """x of any shape whose rows are whole blocks."""
    x = np.ascontiguousarray(x, np.float32)
    if kind in (F32, F16):
        return x.astype("<f4" if kind == F32 else "<f2").tobytes()
    if kind == BF16:
        u = x.view(np.uint32).astype(np.uint64)
        return (u + 0x7FFF + (u >> 16 & 1) >> 16).astype("<u2").tobytes()
    b = TYPES[kind][3](x.reshape(-1, TYPES[kind][0]))
    assert b.dtype == np.uint8 and b.shape[1] == TYPES[kind][1], (kind, b.dtype, b.shape)
    return b.tobytes()
