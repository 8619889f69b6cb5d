"""Contenders whose figures are known beforehand."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.sides import Contender

MODEL = Path("Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf")


def fake(name: str, speed: float, model: Path = MODEL) -> Contender:
    """A side that makes `speed` tokens a second."""
    return Contender(name, model, (sys.executable, "-m", "tests.benchmarks.fake_side", "--speed", str(speed)))
