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
        address = server.address
        assert server.stop() == 0
        with pytest.raises(weft.StateError):
            server.address
        with pytest.raises(urllib.error.URLError):
            post(address, "/completion", body, "a secret key")


def test_what_cannot_be_is_refused(model):
    with pytest.raises(TypeError, match="n_worker"):
        weft.Server(model, n_worker=1)
    with weft.Server(model) as server:
        with pytest.raises(weft.InputOutputError):
            weft.Server(model, port=int(server.address.rsplit(":", 1)[1]))


def test_it_learns_where_it_is_told_to(model, tmp_path):
    with pytest.raises(weft.ArgumentError, match="learn_dir"):
        weft.Server(model, learn_share=0.5)
    with weft.Server(model, learn_dir=tmp_path / "learned", learn_share=0) as server:
        with urllib.request.urlopen(server.address + "/v1/learn", timeout=60) as answer:
            assert json.load(answer)["on"] is True
    with weft.Server(model, learn_dir=tmp_path / "learned") as server, pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(server.address + "/v1/learn", timeout=60)


def test_a_model_that_is_closed_takes_its_server_along(paths):
    model = weft.Model(paths["model"], threads=1)
    server = weft.Server(model)
    address = server.address
    assert post(address, "/completion", {"prompt": "Once", "n_predict": 1})["content"] is not None
    model.close()
    with pytest.raises(urllib.error.URLError):
        post(address, "/completion", {"prompt": "Once", "n_predict": 1})
