"""What the engine's settings may be."""

from __future__ import annotations

from typing import Any

import pytest

from engine.config import QUANTIZATIONS, EngineConfig
from engine.errors import BadRequest
from engine.formats import QUANTIZERS
from engine.formats.huggingface import MADE_ELSEWHERE


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"backend": "cuda"}, "backend is 'cuda'; it must be one of auto, numba, triton, reference"),
        ({"quantization": "int3"}, "quantization is 'int3'; it must be one of auto, none, awq, gptq, fp8"),
        ({"block_size": 24}, "block_size is 24; it must be a multiple of 16"),
        ({"num_chats": 0}, "num_chats is 0; it must lie between 1 and 65,536"),
    ],
)
def test_what_no_machine_could_do(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        EngineConfig(**values)


def test_each_quantization_exists() -> None:
    assert set(QUANTIZATIONS) == {"auto", "none", *QUANTIZERS, *MADE_ELSEWHERE}
