# SPDX-License-Identifier: Apache-2.0
"""Where tests find models and goldens: in the folder WEFT_SHARED, else in ../shared, the reference material, and where that is absent, in
build/material, which tests/material/make makes."""
import os

DEFAULT, OWN = "../shared", os.path.join("build", "material")
NO_MODELS = "no models to test; run tests/material/make, or set WEFT_SHARED"
NEEDS_REFERENCE = "needs the reference material: "  # what a skipped test says then, and of which part; as in tests/claims.h


def folder():
    given = os.environ.get("WEFT_SHARED") or DEFAULT
    return given if given != DEFAULT or os.path.isdir(os.path.join(DEFAULT, "models")) else OWN


def shared(*parts):
    return os.path.join(folder(), *parts)
