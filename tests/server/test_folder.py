"""Claims about the folder of adapters that the real `weft serve` begins with: what of it is served, under which paths, and what is left out.
The files are empty: none is read before somebody asks for it.

usage: test_folder.py build/weft"""
import os
import shutil
import struct
import tempfile
import unittest

import real


def write_adapter(path):
    """Rank 1 of zeros for the first layer's attn_q of the stories model, 64 x 64."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    meta = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"}
    tensors = (("blk.0.attn_q.weight.lora_a", (64, 1), 0), ("blk.0.attn_q.weight.lora_b", (1, 64), 256))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)) + b"".join(text(k) + struct.pack("<I", real.STRING) + text(v) for k, v in meta.items())
    head += b"".join(text(n) + struct.pack("<IQQIQ", 2, *d, 0, at) for n, d, at in tensors)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + bytes(512))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.inside = os.path.join(self.folder, "inside")
        os.makedirs(os.path.join(self.inside, "peft"))
        os.makedirs(os.path.join(self.inside, "leads-out"))
        for path in ("inside/a.gguf", "inside/gpt-4.gguf", "inside/peft/adapter_config.json", "outside.gguf"):
            open(os.path.join(self.folder, path), "w").close()
        os.symlink("../outside.gguf", os.path.join(self.inside, "link.gguf"))
        os.symlink("a.gguf", os.path.join(self.inside, "within.gguf"))
        os.symlink("../../outside.gguf", os.path.join(self.inside, "leads-out", "adapter_config.json"))

    def listed(self, folder, **more):
        server = real.serve("--alias", "gpt-4", "--adapter-dir", folder, **more)
        entries = server.get("/lora-adapters").json
        return [(e["name"], e["path"]) for e in entries], real.checked_stop(server)

    def test_links_out_of_the_folder_and_names_of_the_model_are_left_out(self):
        os.symlink("inside", os.path.join(self.folder, "linked"))
        wanted = [("a", "a.gguf"), ("peft", "peft"), ("within", "within.gguf")]
        for folder in (self.inside, os.path.join(self.folder, "linked"), os.path.relpath(self.inside)):
            entries, err = self.listed(folder)
            self.assertEqual(entries, wanted, folder)
            for name in ("link.gguf", "leads-out", "gpt-4.gguf"):
                self.assertIn(name + " is left out", err)

    def test_who_loads_a_file_learns_no_path(self):
        server = real.serve("--adapter-dir", self.inside)
        said = server.post("/v1/load_lora_adapter", {"lora_name": "mine", "lora_path": "a.gguf"})
        self.assertEqual((said.status, said.json["error"]["param"]), (400, "lora_path"))
        self.assertRegex(said.json["error"]["message"], "^adapter mine: .")
        self.assertNotIn(self.folder, said.body.decode())
        self.assertIn(os.path.join(self.inside, "a.gguf"), real.checked_stop(server))  # the log says it

    def test_an_adapter_given_by_name_is_not_called_as_the_model(self):
        adapter = os.path.join(self.folder, "adapter.gguf")
        write_adapter(adapter)
        with self.assertRaises(RuntimeError) as refused:
            real.serve("--alias", "gpt-4", "--adapter", "gpt-4=" + adapter).kill()  # it is read at once
        self.assertIn("'gpt-4' has a name of the model itself", str(refused.exception))

    def test_a_slot_that_ran_with_adapters_is_not_saved(self):
        """What is cached of its tokens is the adapter's: nothing that the model alone has computed of them is given out for it."""
        adapter = os.path.join(self.folder, "adapter.gguf")
        write_adapter(adapter)
        server = real.serve("--adapter", "zero=" + adapter, "--store", os.path.join(self.folder, "store"))
        body = {"prompt": "Once upon a time there was a cat " * 12, "n_predict": 4, "id_slot": 0}
        for more, status in (({}, 200), ({"lora": [{"id": 0, "scale": 1}]}, 400), ({}, 200)):
            self.assertEqual(server.post("/completion", {**body, **more}).status, 200)
            said = server.post("/slots/0?action=save", {"filename": "kept"})
            self.assertEqual(said.status, status, said.body)
            if status == 400:
                self.assertIn("ran with adapters", said.json["error"]["message"])
        real.checked_stop(server)


if __name__ == "__main__":
    unittest.main(verbosity=1)
