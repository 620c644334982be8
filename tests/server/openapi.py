# SPDX-License-Identifier: Apache-2.0
"""docs/openapi.json is true: answers are as it says, and it knows every endpoint and field."""
import json
import math
import os
import re
import subprocess
import unittest

from servers import CHAT, FAKE, LLAMA, ROOT, TEXT, Server, user


def mismatch(schemas, schema, value, at="$"):
    """What of JSON Schema docs/openapi.json uses for answers: where the value is not what the schema says; "" where it is."""
    if "$ref" in schema:
        return mismatch(schemas, schemas[schema["$ref"].rsplit("/", 1)[1]], value, at)
    if "anyOf" in schema:
        found = [mismatch(schemas, s, value, at) for s in schema["anyOf"]]
        return "" if "" in found else found[0]
    kinds = {
        type(None): ["null"],
        bool: ["boolean"],
        int: ["integer", "number"],
        float: ["number"],
        str: ["string"],
        list: ["array"],
        dict: ["object"],
    }[type(value)]
    wanted = schema.get("type", kinds)
    if not set(kinds) & set(wanted if isinstance(wanted, list) else [wanted]):
        return f"{at} is {kinds[0]}, not {wanted}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} is {value!r}"
    if isinstance(value, list):
        return next((m for i, v in enumerate(value) if (m := mismatch(schemas, schema.get("items", {}), v, f"{at}[{i}]"))), "")
    if not isinstance(value, dict):
        return ""
    missing, more = set(schema.get("required", [])) - set(value), schema.get("additionalProperties", True)
    if missing:
        return f"{at} lacks {missing}"
    for name, v in value.items():
        known = name in schema.get("properties", {})
        if not known and more is False:
            return f"{at}.{name} is not in the document"
        m = mismatch(schemas, schema["properties"][name] if known else more if isinstance(more, dict) else {}, v, f"{at}.{name}")
        if m:
            return m
    return ""


class Documents(unittest.TestCase):
    def test_answers(self):
        """Real answers, and refusals, are what docs/openapi.json says."""
        with open(os.path.join(ROOT, "docs", "openapi.json")) as f:
            document = json.load(f)
        schemas = document["components"]["schemas"]
        tool = {"type": "function", "function": {"name": "f"}}
        asks = [
            ("get", path, None)
            for path in (
                "/v1/models",
                "/models",
                "/v1/models/fake",
                "/health",
                "/v1/health",
                "/openapi.json",
                "/props",
                "/slots",
                "/lora-adapters",
            )
        ]
        for path in (CHAT, "/chat/completions"):
            asks += [
                ("post", path, {"messages": user("[say hi]"), **more})
                for more in (
                    {},
                    {"n": 2, "logprobs": True, "top_logprobs": 2},
                    {"max_tokens": 1, "logprobs": True},
                    {"messages": 5},
                    {"messages": user('[say <think>Hm</think>{"name": "f", "arguments": {}}]'), "tools": [tool]},
                    {"messages": user('[say {"name": "f", "arguments": {}}]'), "functions": [tool["function"]]},
                    {"tools": [{}]},
                )
            ]
        asks += [("post", TEXT, {"prompt": "[say hi]", **more}) for more in ({}, {"logprobs": 2, "echo": True}, {"logprobs": 0, "n": 2}, {"prompt": None})]
        asks += [
            ("post", path, {"prompt": "[say hi]", **more})
            for path in (LLAMA, "/completions")
            for more in (
                {},
                {"n_probs": 2, "return_tokens": True},
                {"stop": ["i"], "n_predict": 9},
                {"n": 2},
                {"n": "x"},
            )
        ]
        asks += [
            ("post", "/v1/embeddings", {"input": ["x", "y"]}),
            ("post", "/v1/embeddings", {"input": "x", "encoding_format": "base64"}),
            ("post", "/v1/embeddings", {"input": "x", "pooling": "last", "instruction": "find"}),
            ("post", "/v1/embeddings", {}),
        ]
        asks += [("post", path, {"content": "x"}) for path in ("/embedding", "/embeddings")]
        asks += [("post", "/tokenize", {"content": "aé", "with_pieces": flag}) for flag in (False, True)] + [
            ("post", "/detokenize", {"tokens": [97]}),
            ("post", "/apply-template", {"messages": user("x")}),
        ]
        asks += [("post", LLAMA, {"prompt": "[say hi]", "id_slot": 0})]
        asks += [
            ("post", "/slots/0?action=" + action, body)
            for action, body in (
                ("save", {"filename": "t"}),
                ("restore", {"filename": "t"}),
                ("erase", {"filename": "t"}),
                ("erase", {}),
                ("save", {}),
            )
        ]
        server = Server([*FAKE, "--template", "<think></think>"])
        try:
            for method, path, body in asks:
                answer = server.ask(method.upper(), path, body)
                plain = path.split("?")[0].replace("/models/fake", "/models/{model}").replace("/slots/0", "/slots/{id_slot}")
                told = document["paths"][plain][method]["responses"]["200" if answer.status == 200 else "default"]["content"]["application/json"]["schema"]
                self.assertNotEqual(told, {"type": "object"}, path)
                self.assertEqual(mismatch(schemas, told, answer.json), "", (path, body, answer.body[:500]))
        finally:
            server.stop()

    def test_the_document_is_valid_and_served(self):
        """To whom has no key, too, and byte for byte. Where openapi-spec-validator is installed, that accepts it; everywhere: what is referred to is
        there, defaults are values that may be given, operations have ids of their own and name the parameters of their paths."""
        with open(os.path.join(ROOT, "docs", "openapi.json"), "rb") as f:
            text = f.read()
        document = json.loads(text)
        server = Server([*FAKE, "--api-key", "key-of-someone"])
        try:
            said = server.get("/openapi.json")
            self.assertEqual((said.status, said.headers["content-type"].split(";")[0], said.body), (200, "application/json", text))
            self.assertEqual(server.get("/props").status, 401)
        finally:
            server.stop()
        faults, ids = [], []

        def walk(value, at):
            if isinstance(value, list):
                for i, v in enumerate(value):
                    walk(v, f"{at}/{i}")
            if not isinstance(value, dict):
                return
            if isinstance(ref := value.get("$ref"), str):
                target = document
                for part in ref.removeprefix("#/").split("/"):
                    target = target.get(part) if isinstance(target, dict) else None
                if not ref.startswith("#/") or target is None:
                    faults.append(f"{at}: {ref} is not there")
            default, kinds = value.get("default"), value.get("type")
            if default is not None and kinds and at.split("/")[-2:-1] == ["properties"]:
                m = mismatch(document["components"]["schemas"], {"type": kinds, **({"enum": value["enum"]} if "enum" in value else {})}, default)
                if (
                    m
                    or not value.get("minimum", -math.inf)
                    <= (default if isinstance(default, (int, float)) else math.inf)
                    <= value.get("maximum", math.inf)
                    and isinstance(default, (int, float))
                ):
                    faults.append(f"{at}: {default!r} cannot be given")
            if missing := set(value.get("required", [])) - set(value.get("properties", {})) if isinstance(value.get("required"), list) else ():
                faults.append(f"{at}: requires {missing}, which it does not describe")
            for key, v in value.items():
                walk(v, f"{at}/{key}")
        walk(document, "#")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                ids.append(operation["operationId"])
                named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path" and p["required"]}
                if (
                    named != set(re.findall(r"{(\w+)}", path))
                    or "responses" not in operation
                    or not all("description" in r for r in operation["responses"].values())
                ):
                    faults.append(f"{method} {path}")
        self.assertEqual(faults, [])
        self.assertEqual(len(ids), len(set(ids)))
        try:
            import openapi_spec_validator
        except ImportError:
            return  # what it would say of this document, the above says
        openapi_spec_validator.validate(document)

    def test_openapi(self):
        """docs/openapi.json says of every field what the tables say."""
        tables = json.loads(subprocess.run([*FAKE, "--fields"], capture_output=True, text=True, check=True).stdout)
        with open(os.path.join(ROOT, "docs", "openapi.json")) as f:
            document = json.load(f)
        for name, table in tables.items():
            operation = document["paths"][table["path"]]["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
            self.assertEqual(set(schema["properties"]), set(table["fields"]), name)
            self.assertEqual(set(schema.get("required", [])), {f for f, v in table["fields"].items() if v["required"]}, name)
            self.assertEqual(schema["additionalProperties"], not table["strict"], name)
            for field, says in table["fields"].items():
                have = schema["properties"][field]
                for key in ("minimum", "maximum", "maxLength", "default"):
                    self.assertEqual(have.get(key), says.get(key), (name, field, key))
                if says["type"] in ("boolean", "integer", "number", "string"):
                    self.assertEqual(have["type"], says["type"], (name, field))
        length = document["components"]["schemas"]["SlotRequest"]["properties"]["filename"]["maxLength"]
        for options, headers in (((), {}), (("--api-key", "key-of-someone"), {"X-Api-Key": "key-of-someone"})):
            server = Server([*FAKE, *options])
            try:
                for n, status in ((length, 404), (length + 1, 400)):
                    self.assertEqual(server.post("/slots/0?action=restore", {"filename": "x" * n}, headers=headers).status, status, (options, n))
            finally:
                server.stop()
        routes = subprocess.run([*FAKE, "--routes"], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(sorted(document["paths"]), sorted(routes))
        server = Server(FAKE)
        try:
            for path, operations in document["paths"].items():
                for method in ("get", "post"):
                    real = path.replace("{model}", "fake").replace("{id_slot}", "0").replace("{file}", "app.js")
                    status = server.ask(method.upper(), real, b"{}" if method == "post" else None).status
                    self.assertEqual(status == 405, method not in operations, (path, method))
                    self.assertNotEqual(status, 404, path)
        finally:
            server.stop()
