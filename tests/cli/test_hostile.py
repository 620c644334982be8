# SPDX-License-Identifier: Apache-2.0
"""Claims about hostile files: whatever is wrong with a model, `weft` ends with status 1 and one message on stderr that names the file and
the thing, and prints nothing else. usage: test_hostile.py build/weft"""
import os
import shutil
import struct
import tempfile
import unittest

from common import main, repeated, weft
from gguf_maker import ARRAY, BOOL, D, F32, FF, I32, STRING, TYPE_F16, U8, U32, U64, VOCAB, Model, Raw

HUGE, MAX = 1 << 63, (1 << 64) - 1
EVERY = repeated(1, 3, 5)  # file; tests/unit/gguf_malformed.c has them too


def u64(n):
    return struct.pack("<Q", n)


def field(**changes):
    return lambda m: m.__dict__.update(changes)


def cut(text, offset=0):
    """Cuts the file `offset` bytes behind the first place where `text` stands."""
    def damage(m):
        m.cut = bytes(m).index(text) + offset
    return damage


def meta(key, kind, value):
    return lambda m: m.meta.update({key: (kind, value)})


def without(key):
    return lambda m: m.meta.pop(key)


def more(key, kind, value):
    return lambda m: m.more_meta.append((key, kind, value))


def tensor(which, **changes):
    return lambda m: m.tensor(which).__dict__.update(changes)


def added(name, dims, **changes):
    return lambda m: m.add(name, dims).__dict__.update(changes)


def removed(name):
    return lambda m: m.remove(name)


def both(*damages):
    return lambda m: [damage(m) for damage in damages] and None


# (what is done to a valid model, the words that name the fault); `info` refuses these too.
NO_FILES = [
    (cut(b"GGUF"), "the file is empty"),
    (cut(b"GGUF", 3), "3 bytes"),
    (cut(b"GGUF", 20), "ends inside its counts"),
    (cut(b"general.architecture", 5), "16 metadata entries cannot fit"),
    (cut(b"tokenizer.ggml.eos_token_id", -4), "metadata key 15"),
    (cut(b"tokenizer.ggml.eos_token_id", 7), "metadata key 15"),
    (cut(b"tokenizer.ggml.eos_token_id", 29), "tokenizer.ggml.eos_token_id"),
    (cut(b"tokenizer.ggml.eos_token_id", 33), "tokenizer.ggml.eos_token_id"),
    (cut(b"<0x41>", 2), "tokenizer.ggml.tokens"),
    (cut(b"tokenizer.ggml.scores", 60), "tokenizer.ggml.scores"),
    (cut(b"blk.0.attn_q.weight", 8), "21 tensor descriptions cannot fit"),
    (cut(b"blk.1.ffn_down.weight", 8), "tensor 20"),
    (cut(b"blk.1.ffn_down.weight", 23), "blk.1.ffn_down.weight"),
    (cut(b"blk.1.ffn_down.weight", 40), "blk.1.ffn_down.weight"),
    (cut(b"blk.1.ffn_down.weight", 48), "blk.1.ffn_down.weight"),
    (field(cut=-1), "blk.1.ffn_down.weight"),
    (field(cut=-9000), "reach past the end"),
    (field(magic=b"GGML"), "not a GGUF file"),
    (field(magic=b"<htm"), "not a GGUF file"),
    (field(version=1), "version 1"),
    (field(version=99), "version 99"),
    (field(version=0x03000000), "big-endian"),
    (field(n_meta=HUGE), "9223372036854775808 metadata entries"),
    (field(n_meta=MAX), "metadata entries cannot fit"),
    (field(n_tensors=HUGE), "9223372036854775808 tensor descriptions"),
    (field(n_tensors=1000), "tensor"),
    (field(n_meta=5), "tensor 'llama.feed_forward_length'"),
    (more(Raw(u64(HUGE)), U8, 1), "its name of 9223372036854775808 bytes"),
    (more("", U8, 1), "its name is empty"),
    (more("x\0y", U8, 1), "contains a NUL"),
    (more(b"\xff\xfe", U8, 1), "not valid UTF-8"),
    (more("general.name", STRING, "twice"), "general.name"),
    (more("x", 13, Raw(b"")), "value type 13"),
    (more("x", BOOL, 2), "a bool is stored as 2"),
    (more("x", STRING, Raw(u64(MAX))), "a string of 18446744073709551615 bytes"),
    (more("x", ARRAY, Raw(struct.pack("<IQ", U8, HUGE))), "an array of 9223372036854775808 values"),
    (more("x", ARRAY, Raw(struct.pack("<IQ", 77, 1))), "element type 77"),
    (more("x", ARRAY, Raw(struct.pack("<IQ", ARRAY, 1) * 6)), "nested more than 4 deep"),
    (more("x", ARRAY, Raw(struct.pack("<IQ", ARRAY, 1) * 50000)), "nested more than 4 deep"),
    (more("general.alignment", U32, 0), "general.alignment"),
    (more("general.alignment", U32, 24), "general.alignment"),
    (more("general.alignment", U32, 1 << 31), "not a multiple of the alignment 2147483648"),
    (more("general.alignment", STRING, "32"), "general.alignment"),
    (tensor("output_norm.weight", name=""), "its name is empty"),
    (tensor("output_norm.weight", name="n" * 65), "exceeds the limit of 64"),
    (tensor("output_norm.weight", name="output.weight"), "'output.weight' is there twice"),
    (tensor("output_norm.weight", dims=[]), "0 dimensions"),
    (tensor("output_norm.weight", dims=[1] * 5), "5 dimensions"),
    (tensor("output_norm.weight", dims=[0], offset=0), "dimension 0 is 0"),
    (tensor("output_norm.weight", dims=[32, 0], offset=0), "dimension 1 is 0"),
    (tensor("output_norm.weight", dims=[-1], offset=0), "number of elements overflows"),
    (tensor("output_norm.weight", dims=[1 << 62, 4], offset=0), "number of elements overflows"),
    (tensor("output_norm.weight", dims=[1 << 61], offset=0), "size of its 2305843009213693952 elements"),
    (tensor("output_norm.weight", kind=99), "type id 99"),
    (tensor("output_norm.weight", kind=39), "MXFP4"),
    (tensor("output_norm.weight", kind=8, dims=[31]), "not a multiple of"),
    (tensor("output_norm.weight", offset=1), "not a multiple of the alignment"),
    (tensor("output_norm.weight", offset=HUGE), "reach past the end"),
    (tensor("output_norm.weight", offset=1 << 30), "reach past the end"),
    (tensor("output_norm.weight", offset=32), "overlap"),
    (meta("split.count", U32, 3), "split"),
]

# Well-formed files of models that cannot be: `info` shows them, `run` refuses them.
NO_MODELS = [
    (without("general.architecture"), "general.architecture is missing"),
    (meta("general.architecture", U32, 7), "general.architecture is an integer"),
    (meta("general.architecture", STRING, "x" * 100), "general.architecture is too long"),
    (meta("general.architecture", STRING, "perceptron"), "'perceptron' is not supported"),
    (without("llama.block_count"), "llama.block_count is missing"),
    (without("llama.context_length"), "llama.context_length is missing"),
    (without("llama.attention.layer_norm_rms_epsilon"), "llama.attention.layer_norm_rms_epsilon is missing"),
    (meta("llama.block_count", U32, 0), "llama.block_count is 0"),
    (meta("llama.block_count", U32, 1), "blk.1.attn_norm.weight lies beyond the 1 layers that key llama.block_count gives"),
    (meta("llama.block_count", U32, 3), "tensor blk.2.attn_q.weight is missing"),
    (meta("llama.block_count", U32, 5000), "llama.block_count is 5000"),
    (meta("llama.block_count", U64, MAX), "llama.block_count is an integer above"),
    (meta("llama.block_count", STRING, "2"), "llama.block_count is a string"),
    (meta("llama.context_length", I32, -1), "llama.context_length is -1"),
    (meta("llama.embedding_length", U32, 0), "llama.embedding_length is 0"),
    (meta("llama.embedding_length", U32, 64), "token_embd.weight is 32 x 300"),
    (meta("llama.embedding_length", U32, 1 << 31), "llama.embedding_length"),
    (meta("llama.feed_forward_length", U32, 65), "ffn_gate.weight is 32 x 64"),
    (meta("llama.feed_forward_length", F32, 64.0), "llama.feed_forward_length"),
    (meta("llama.feed_forward_length", ARRAY, (U32, [FF])), "llama.feed_forward_length has 1 values for 2 layers"),
    (meta("llama.feed_forward_length", ARRAY, (U32, [FF, 32])), "llama.feed_forward_length differs"),
    (meta("llama.attention.head_count", U32, 0), "llama.attention.head_count is 0"),
    (meta("llama.attention.head_count", U32, 3), "3 heads"),
    (meta("llama.attention.head_count", U32, 64), "64 heads"),
    (meta("llama.attention.head_count_kv", U32, 4), "attn_k.weight is 32 x 16"),
    (meta("llama.attention.key_length", U32, 0), "llama.attention.key_length is 0"),
    (meta("llama.attention.key_length", U32, 16), "attn_q.weight"),
    (meta("llama.attention.layer_norm_rms_epsilon", F32, float("nan")), "llama.attention.layer_norm_rms_epsilon"),
    (meta("llama.attention.layer_norm_rms_epsilon", F32, 2.0), "norm epsilon is 2"),
    (meta("llama.rope.dimension_count", U32, 7), "7 rotated elements"),
    (meta("llama.rope.dimension_count", U32, 100), "100 rotated elements"),
    (meta("llama.rope.freq_base", F32, -1.0), "rope base -1"),
    (meta("llama.rope.freq_base", F32, float("inf")), "llama.rope.freq_base"),
    (meta("llama.rope.scaling.type", STRING, "su"), "rope scaling 'su'"),
    (meta("llama.expert_count", U32, 4), "expert"),
    (removed("token_embd.weight"), "token_embd.weight is missing"),
    (removed("output_norm.weight"), "output_norm.weight is missing"),
    (removed("blk.0.attn_v.weight"), "blk.0.attn_v.weight is missing"),
    (removed("blk.1.ffn_down.weight"), "blk.1.ffn_down.weight is missing"),
    (tensor("blk.0.attn_q.weight", dims=[D, D // 2]), "tensor blk.0.attn_q.weight is 32 x 16; the hyperparameters say 32 x 32"),
    (tensor("blk.0.attn_q.weight", dims=[D * D]), "tensor blk.0.attn_q.weight is 1024"),
    (tensor("blk.1.ffn_norm.weight", dims=[D - 1]), "tensor blk.1.ffn_norm.weight is 31"),
    (tensor("blk.1.ffn_norm.weight", kind=TYPE_F16), "vector blk.1.ffn_norm.weight is F16"),
    (tensor("output.weight", dims=[D, VOCAB - 1]), "output.weight is 32 x 299"),
    (both(tensor("token_embd.weight", dims=[D, VOCAB - 1]), removed("output.weight")), "tokenizer has 300 tokens, token_embd.weight only 299"),
    (added("blk.99.foo", [D]), "blk.99.foo lies beyond"),
    (added("blk.2.attn_norm.weight", [D]), "blk.2.attn_norm.weight lies beyond"),
    (added("blk.0.attn_sinks.weight", [D]), "blk.0.attn_sinks.weight has no place in architecture 'llama'"),
    (added("blk.x.foo", [D]), "blk.x.foo has no place"),
    (added("v.patch_embd.weight", [D]), "v.patch_embd.weight has no place"),
    (added("blk.0.attn_q.bias", [D + 1]), "blk.0.attn_q.bias is 33"),
    (added("rope_freqs.weight", [3]), "rope_freqs.weight is 3"),
    (meta("tokenizer.ggml.tokens", U32, 1), "tokenizer.ggml.tokens"),
    (meta("tokenizer.ggml.tokens", ARRAY, (STRING, ["a"])), "scores has 300 entries for 1 tokens"),
    (meta("tokenizer.ggml.scores", ARRAY, (F32, [0.0])), "scores has 1 entries for 300 tokens"),
    (meta("tokenizer.ggml.token_type", ARRAY, (I32, [1])), "token"),
    (meta("tokenizer.weft.strips", ARRAY, (U8, [1] * (VOCAB + 1))), "tokenizer.weft.strips has 301 entries for 300 tokens"),
    (meta("tokenizer.weft.strips", ARRAY, (U8, [])), "tokenizer.weft.strips"),
    (meta("tokenizer.weft.strips", ARRAY, (I32, [1] * VOCAB)), "tokenizer.weft.strips"),
    (meta("tokenizer.weft.strips", U8, 1), "tokenizer.weft.strips"),
    (meta("tokenizer.ggml.model", STRING, "runes"), "'runes'"),
    (meta("tokenizer.ggml.bos_token_id", U32, 300), "300"),
    (meta("tokenizer.ggml.eos_token_id", STRING, "x"), "tokenizer.ggml.eos_token_id"),
]

# The engine does without these, or computes them itself.
FINE = [
    lambda m: None,
    removed("output.weight"),
    added("rope_factors_long.weight", [4]),
    added("blk.0.attn_rot_embd.weight", [4]),
    field(tail=b"behind the last tensor"),
    more("somebody.elses.key", ARRAY, (STRING, ["a", "b"])),
]


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def make(self, damage, name="m.gguf"):
        model = Model()
        damage(model)
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(bytes(model))
        return path

    def refused(self, path, words, *command):
        p = weft(*command)
        message = p.stderr.decode()
        self.assertEqual(p.returncode, 1, message)
        self.assertIn(words, message)
        self.assertIn(path, message)
        self.assertEqual((message.count("\n"), p.stdout), (1, b""), message)

    def test_malformed_files(self):
        self.assertGreaterEqual(len(NO_FILES) + len(NO_MODELS), 60)
        for i, (damage, words) in list(enumerate(NO_FILES))[::EVERY]:
            with self.subTest(words, i=i):
                path = self.make(damage)
                self.refused(path, words, "run", path, "a", "-n", "1")
                self.refused(path, words, "info", path)

    def test_models_that_cannot_be(self):
        for i, (damage, words) in list(enumerate(NO_MODELS))[::EVERY]:
            with self.subTest(words, i=i):
                path = self.make(damage)
                self.refused(path, words, "run", path, "a", "-n", "1")
                self.assertEqual(weft("info", path).returncode, 0)

    def test_the_model_itself_is_fine(self):
        for i, damage in enumerate(FINE):
            with self.subTest(i=i):
                p = weft("run", self.make(damage), "a", "-n", "2", "--temp", "0", "--ignore-eos")
                self.assertEqual(p.returncode, 0, p.stderr)

    def test_names_cannot_steer_a_terminal(self):
        evil = "\x1b]0;owned\x07\r\n\u009b2J\x7f" + "\u00e9"
        named = both(meta("general.name", STRING, evil), more("key" + evil, U8, 1), more("text", STRING, evil),
                     meta("tokenizer.ggml.tokens", ARRAY, (STRING, ["<unk>", evil, *Model().meta["tokenizer.ggml.tokens"][1][1][2:]])))
        path = self.make(named)
        for command in (
            ["info", path],
            ["run", path, "a", "-n", "1", "--json"],
            ["run", path, "a", "-n", "1", "--temp", "0"],
            ["bench", path, "-p", "2", "-n", "1", "-r", "1"],
            ["tokenize", path, "a", "--pieces"],
            ["run", self.make(added("blk.0." + evil, [D]), "x.gguf"), "a"],
            ["run", self.make(meta("general.architecture", STRING, evil), "y.gguf"), "a"],
        ):
            p = weft(*command)
            printed = (p.stdout if command[0] != "run" else b"") + p.stderr
            self.assertNotRegex(printed.decode(), "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertTrue("--json" in command or "\u00e9" in printed.decode(), (command, printed))

    def test_split_files(self):
        """Parts that lack others, that name themselves, or say other things than their names."""
        def part(number, of):
            return both(meta("split.no", U32, number), meta("split.count", U32, of), meta("split.tensors.count", I32, 999))
        first, second = "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"
        for what, ones in (("no second", [(first, part(0, 2))]), ("twice the first", [(first, part(0, 2)), (second, part(0, 2))]),
                           ("of three", [(first, part(0, 2)), (second, part(1, 3))]), ("tensors twice", [(first, part(0, 2)), (second, part(1, 2))])):
            with self.subTest(what):
                for name in os.listdir(self.folder):
                    os.remove(os.path.join(self.folder, name))
                paths = [self.make(damage, name) for name, damage in ones]
                self.refused(os.path.join(self.folder, "m-0000"), "", "run", paths[0], "a", "-n", "1")
                self.refused(os.path.join(self.folder, "m-0000"), "", "info", paths[0])

    def test_what_is_no_file(self):
        os.symlink("loop", os.path.join(self.folder, "loop"))
        for path in (self.folder, os.path.join(self.folder, "loop"), os.path.join(self.folder, "none"), "/dev/null"):
            self.refused(path, "", "run", path, "a")


if __name__ == "__main__":
    main()
