"""Kernels are run by Triton's interpreter, which interpreter.py puts right first. Triton is for Linux."""

from __future__ import annotations

import sys

if sys.platform == "linux":
    import tests.kernels.triton.interpreter  # noqa: F401
else:
    collect_ignore_glob = ["*"]


def pytest_report_header() -> str:
    run = "interpreted" if sys.platform == "linux" else "not tested on this system"
    return f"kernels in Triton: {run}"
