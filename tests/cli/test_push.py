# SPDX-License-Identifier: Apache-2.0
"""weft push: what is pushed can be pulled, byte for byte; large files go by Git LFS, once; the model card has the front matter that it was
told; the token goes to the server alone, and a server that refuses or answers nonsense is told.

usage: test_push.py build/weft"""
import json
import os

from common import main
from pull_case import BIG, MODEL, TOKEN, Case
from pull_server import PullServer


class Push(Case):
    repos = {"owner/name": {}}

    def setUp(self):
        super().setUp()
        self.model = os.path.join(self.cache, "m-Q4_0.gguf")
        with open(self.model, "wb") as f:
            f.write(BIG)

    def push(self, *args, code=0, **more):
        p = self.weft("push", *args, **{"HF_TOKEN": TOKEN, **more})
        self.assertEqual(p.returncode, code, p.stderr)
        return p

    def refused(self, word, *args, **more):
        self.assertIn(word, self.push(*args, code=1, **more).stderr)
        self.assertFalse([b for b in self.server.bodies if b[1].endswith("commit/main")])

    def test_what_is_pushed_is_pulled(self):
        p = self.push("owner/name", self.model, "--license", "apache-2.0", "--base-model", "owner/base", "-m", "First \"words\"")
        self.assertEqual(p.stdout.decode().strip(), self.server.url + "/owner/name")
        self.pulled("owner/name", BIG)
        card = self.server.repos["owner/name"]["README.md"].decode()
        self.assertEqual(card.split("---\n")[1], 'license: "apache-2.0"\nbase_model: "owner/base"\npipeline_tag: text-generation\ntags:\n- gguf\n')
        header = json.loads([b for _, path, b in self.server.bodies if path.endswith("commit/main")][0].splitlines()[0])
        self.assertEqual(header["value"]["summary"], 'First "words"')
        self.assertEqual({t for t in self.server.tokens()}, {"Bearer " + TOKEN, None})  # none: what goes where the server says, and pulling

    def test_what_the_server_has_is_not_sent_again(self):
        self.push("owner/name", self.model)
        self.assertEqual(len([1 for m, *_ in self.server.bodies if m == "PUT"]), 1)
        self.assertIn(b"0.00 MB of them sent", self.push("owner/name", self.model, "--no-card").stderr)
        self.assertEqual(len([1 for m, *_ in self.server.bodies if m == "PUT"]), 1)

    def test_a_folder_and_a_card_of_its_own(self):
        folder = os.path.join(self.cache, "adapter")
        os.makedirs(os.path.join(folder, "below"))
        for name, data in (("adapter_config.json", b"{}"), ("adapter_model.safetensors", MODEL), (".hidden", b"x"), ("README.md", b"mine")):
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
        self.push("owner/name", folder)
        self.assertEqual(self.server.repos["owner/name"], {"adapter_config.json": b"{}", "adapter_model.safetensors": MODEL, "README.md": b"mine"})

    def test_a_repository_is_made_when_asked(self):
        self.refused(b"not found", "owner/new", self.model)
        self.push("owner/new", self.model, "--create")
        self.push("owner/new", self.model, "--create")  # it is there now
        self.assertEqual(self.server.repos["owner/new"]["m-Q4_0.gguf"], BIG)

    def test_the_token_goes_to_no_other_server(self):
        with PullServer() as store:
            self.server.store = store.url
            self.server.on_push = lambda request, path, body: self.server.objects.update(store.objects) or False
            self.push("owner/name", self.model)
            self.assertEqual(store.tokens(), [None])
            self.assertEqual(store.log[0][1]["X-Signed"], "yes")
        self.assertEqual(self.server.repos["owner/name"]["m-Q4_0.gguf"], BIG)

    def test_what_is_refused(self):
        self.refused(b"HF_TOKEN", "owner/name", self.model, HF_TOKEN="")
        self.refused(b"no such file", "owner/name", "/nowhere/m.gguf")
        self.refused(b"two files", "owner/name", self.model, self.model)
        self.refused(b"without a file", "owner/name:x", self.model)
        answers = {"preupload": [b"[", b"{}", b'{"files": [{"path": "m-Q4_0.gguf", "uploadMode": "pigeon"}]}'],
                   "batch": [b"{}", b'{"objects": 5}']}
        for where, bodies in answers.items():
            for answer in bodies:
                self.server.on_push = lambda request, path, body: where in path and (request.reply(200, answer) or True)
                self.refused(b"weft push: ", "owner/name", self.model, "--no-card")
        for status in (401, 403, 413, 500):
            self.server.on_push = lambda request, path, body: path.startswith("/store/") and (request.reply(status) or True)
            self.refused(b"status %d" % status, "owner/name", self.model)


if __name__ == "__main__":
    main()
