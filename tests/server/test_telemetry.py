# SPDX-License-Identifier: Apache-2.0
"""Claims about what `weft serve` tells of itself: /metrics, the log of requests, the trace, and `weft top`, over a small real model.

usage: test_telemetry.py build/weft"""
import telemetry  # noqa: F401  (first: it finds the others)
import common
from telemetry_log import Log, Trace  # noqa: F401
from telemetry_metrics import Memory, Metrics, MetricsFile, Stages  # noqa: F401
from telemetry_top import Top  # noqa: F401


if __name__ == "__main__":
    common.main()
