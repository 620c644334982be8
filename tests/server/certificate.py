# SPDX-License-Identifier: Apache-2.0
"""A certificate of localhost's own, and its key. usage: tests import it"""
import subprocess
import unittest


def make_certificate(cert, key):
    """Writes both as PEM; skips the test where there is no openssl to make them."""
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-days", "2", "-keyout", key, "-out", cert], capture_output=True, check=True)
    except FileNotFoundError:
        raise unittest.SkipTest("there is no openssl to make a certificate; scripts/setup test installs it")
