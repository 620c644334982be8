# SPDX-License-Identifier: Apache-2.0
"""A server in this process answers beside Python, with the same words, and ends when it is told."""

import json
import threading
import urllib.error
import urllib.request

import pytest

import weft


def post(address, path, body, key=None):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    with urllib.request.urlopen(urllib.request.Request(address + path, json.dumps(body).encode(), headers), timeout=60) as answer:
        return json.load(answer)


def test_it_answers_beside_python(model):
    with weft.Server(model, api_keys=["a secret key"], n_workers=2) as server:
        body = {"prompt": "Once upon a time", "n_predict": 12, "temperature": 0}
        with pytest.raises(urllib.error.HTTPError):
            post(server.address, "/completion", body)
        said = []
        threads = [threading.Thread(target=lambda: said.append(post(server.address, "/completion", body, "a secret key")["content"])) for _ in range(4)]
        for thread in threads:
            thread.start()
        own = model.generate("Once upon a time", max_tokens=12, temperature=0)
        for thread in threads:
            thread.join()
        assert said == [own] * 4
        assert server.stop() == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen("http://127.0.0.1:1/", timeout=5)
    with pytest.raises(weft.StateError):
        server.address


def test_what_cannot_be_is_refused(model):
    with pytest.raises(TypeError, match="n_worker"):
        weft.Server(model, n_worker=1)
    with weft.Server(model) as server:
        with pytest.raises(weft.InputOutputError):
            weft.Server(model, port=int(server.address.rsplit(":", 1)[1]))


def test_a_model_that_is_closed_takes_its_server_along(paths):
    model = weft.Model(paths["model"], threads=1)
    server = weft.Server(model)
    address = server.address
    assert post(address, "/completion", {"prompt": "Once", "n_predict": 1})["content"] is not None
    model.close()
    with pytest.raises(urllib.error.URLError):
        post(address, "/completion", {"prompt": "Once", "n_predict": 1})
