"""No op launches what does not fit: for each, one wrong thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels import Dense, Experts, KVLayer, Norm, Rope
from kernels.triton import TritonOps
from tests.kernels.triton.paged import Heads, Step, make_step

ROWS, WIDTH, HEADS = 4, 64, Heads(queries=4, keys=2, dim=16, block_size=16)
OPS = TritonOps("cpu", torch.float32)
EIGHT = TritonOps("cpu", torch.float32, torch.int8)


def dense(outputs: int, width: int = WIDTH) -> Any:
    return OPS.pack([Dense(torch.randn(outputs, width))])


def norm(width: int = WIDTH) -> Norm:
    return Norm(torch.ones(width), 1e-5)


def rows(width: int = WIDTH, count: int = ROWS, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(count, width, dtype=dtype)


def experts(**wrong: object) -> Experts:
    gate = OPS.pack([Dense(torch.randn(32, WIDTH)) for _ in range(2)], gated=True)
    sound = Experts(dense(4), (gate,) * 4, (dense(WIDTH, 32),) * 4, 2, True)
    return replace(sound, **wrong)


TURN = Rope(torch.ones(20, 8), torch.zeros(20, 8))
# What each op is given besides the batch, by name: all of it sound.
SOUND: dict[str, Callable[[Step], dict[str, Any]]] = {
    "embed": lambda step: {"table": dense(9), "hidden": rows()},
    "norm_linear": lambda step: {"hidden": rows(), "norm": norm(), "weight": dense(32), "out": rows(32)},
    "rope_write": lambda step: {
        "qkv": rows(128), "rope": TURN, "kv": step.kv, "q": rows(), "q_norm": norm(16), "k_norm": norm(32),
    },
    "attention": lambda step: {"q": rows(), "kv": step.kv, "out": rows()},
    "linear_add": lambda step: {"x": rows(32), "weight": dense(WIDTH, 32), "hidden": rows()},
    "add": lambda step: {"x": rows(), "hidden": rows(), "norm": norm(32)},
    "norm_gated_linear": lambda step: {
        "hidden": rows(), "norm": norm(), "weight": experts().gate_up[0], "out": rows(32),
    },
    "gate": lambda step: {"x": rows(32), "up": rows(32), "out": rows(32)},
    "norm_experts_add": lambda step: {"hidden": rows(), "norm": norm(), "experts": experts()},
    "logits": lambda step: {"hidden": rows(), "norm": norm(), "weight": dense(9), "out": rows(9)},
}  # fmt: skip
STRIDED = torch.zeros(WIDTH, ROWS).T
# (op, what of it is wrong, what it is instead, what is said)
WRONG: list[tuple[str, str, Callable[[Any], object], str]] = [
    ("embed", "hidden", lambda it: rows(32), "needed are rows of 64 torch.float32"),
    ("embed", "hidden", lambda it: rows(dtype=torch.float16), "of torch.float16; needed"),
    ("embed", "hidden", lambda it: rows(count=2), "A step of 3 rows needs contiguous buffers of as many"),
    ("norm_linear", "hidden", lambda it: STRIDED, r"strides \(1, 4\)"),
    ("norm_linear", "hidden", lambda it: it.to("meta"), "on meta"),
    ("norm_linear", "hidden", lambda it: rows(count=2), "A step of 3 rows"),
    ("norm_linear", "norm", lambda it: norm(63), r"gain is \(63,\).*needed are 64"),
    ("norm_linear", "norm", lambda it: Norm(it.gain.half(), 1e-5), "of torch.float16"),
    ("norm_linear", "weight", lambda it: dense(32, 32), "takes rows of 32 to rows of 32"),
    ("norm_linear", "weight", lambda it: experts().gate_up[0], "packed as gated|takes rows"),
    ("norm_linear", "out", lambda it: rows(33), "to rows of 32, not"),
    ("norm_linear", "out", lambda it: rows(32, dtype=torch.float64), "to torch.float64"),
    ("rope_write", "qkv", lambda it: rows(100), "qkv is .* needed are rows of 128"),
    ("rope_write", "qkv", lambda it: rows(128, dtype=torch.bfloat16), "qkv is .* of torch.bfloat16"),
    ("rope_write", "q", lambda it: rows(dtype=torch.float16), "q is .* of torch.float16"),
    ("rope_write", "q", lambda it: rows(count=2), "A step of 3 rows"),
    ("rope_write", "rope", lambda it: replace(it, cos=it.cos.half()), "cosines is .* of torch.float16"),
    ("rope_write", "rope", lambda it: replace(it, sin=it.sin[:9]), r"sines \(9, 8\)"),
    ("rope_write", "rope", lambda it: Rope(torch.ones(20, 9), torch.ones(20, 9)), "at most 8 columns"),
    ("rope_write", "q_norm", lambda it: norm(15), "gain is .* needed are 16 or 64"),
    ("rope_write", "k_norm", lambda it: norm(64), "gain is .* needed are 16 or 32"),
    ("attention", "q", lambda it: rows(32), "q is .* needed are rows of 64"),
    ("attention", "out", lambda it: rows(dtype=torch.float64), "out is .* of torch.float64"),
    ("attention", "out", lambda it: STRIDED, "needs contiguous buffers"),
    ("attention", "kv", lambda it: replace(it, pool=it.pool.half()), "of torch.float16, strides"),
    ("attention", "kv", lambda it: replace(it, pool=it.pool[..., :-1]), "needs contiguous ones"),
    ("attention", "kv", lambda it: replace(it, layer=2), "layer 2 of 2"),
    ("attention", "kv", lambda it: replace(it, layer=-1), "layer -1 of 2"),
    ("attention", "kv", lambda it: replace(it, kind=1), "page kind 1; the step has 1"),
    ("attention", "kv", lambda it: replace(it, num_heads=3), "3 heads over 2, blocks of 16"),
    ("attention", "kv", lambda it: replace(it, block_size=8, head_dim=32), "multiples of 16"),
    ("attention", "kv", lambda it: replace(it, sinks=torch.ones(3)), "sinks is .* needed are 4"),
    ("linear_add", "x", lambda it: rows(31), "takes rows of 32"),
    ("linear_add", "x", lambda it: rows(32, dtype=torch.float16), "Activations are torch.float32"),
    ("linear_add", "hidden", lambda it: rows(32), "to rows of 64, not"),
    ("add", "x", lambda it: rows(1), "x is .* needed are rows of 64"),
    ("add", "hidden", lambda it: rows(dtype=torch.float64), "hidden is .* of torch.float64"),
    ("add", "norm", lambda it: norm(24), "gain is .* needed are 64"),
    ("norm_gated_linear", "weight", lambda it: dense(64), "packed as gated|takes rows"),
    ("norm_gated_linear", "out", lambda it: rows(64), "to rows of 32, not"),
    ("norm_gated_linear", "norm", lambda it: norm(65), "gain is"),
    ("gate", "up", lambda it: rows(1), "up is .* needed are rows of 32"),
    ("gate", "x", lambda it: rows(32, dtype=torch.float16), "x is .* of torch.float16"),
    ("norm_experts_add", "hidden", lambda it: rows(32), "hidden is .* needed are rows of 64"),
    ("norm_experts_add", "experts", lambda it: experts(top_k=5), "through 5 of 4 experts"),
    ("norm_experts_add", "experts", lambda it: experts(down=it.down[:3]), "4 x 64 has 4 and 3 matrices"),
    ("norm_experts_add", "experts", lambda it: experts(down=(dense(60, 32),) * 4), "needed are 4 of each"),
    ("logits", "out", lambda it: rows(10), "to rows of 9, not"),
    ("logits", "norm", lambda it: norm(9), "gain is"),
    ("logits", "hidden", lambda it: STRIDED, "needs contiguous buffers"),
]  # fmt: skip


@pytest.fixture(scope="module")
def step() -> Step:
    made = make_step([2, 1], [10, 3], heads=HEADS)
    made.batch.counts[2] = 2
    return made


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kernels that would have been; none is."""
    names = list[str]()
    monkeypatch.setattr(
        "triton.runtime.interpreter.GridExecutor.__call__",
        lambda self, *given, **more: names.append(self.fn.__name__),
    )
    return names


@pytest.mark.parametrize("op,name,change,text", WRONG, ids=[f"{op} {name}" for op, name, *_ in WRONG])
def test_what_does_not_fit_is_not_launched(
    op: str, name: str, change: Callable[[Any], object], text: str, step: Step, launched: list[str]
) -> None:
    """At most a norm is, which is sound by itself, before a product that does not fit."""
    given = SOUND[op](step)
    with pytest.raises(ValueError, match=text) as caught:
        getattr(OPS, op)(step.batch, **{**given, name: change(given[name])})
    assert str(caught.value).endswith(".")
    assert {*launched} <= ({"_norm"} if name in ("weight", "out", "experts") else set())


@pytest.mark.parametrize("op", SOUND)
def test_what_fits_is_launched(op: str, step: Step, launched: list[str]) -> None:
    getattr(OPS, op)(step.batch, **SOUND[op](step))
    assert launched or op == "gate", "torch computes a gate"


def test_scales_of_8_bits(launched: list[str]) -> None:
    step = make_step([1], [10], heads=HEADS, kv_dtype=torch.int8)
    kv, scales = step.kv, step.kv.scales
    assert scales is not None
    wrong: dict[str, KVLayer] = {
        "come with scales": replace(kv, scales=None),
        "scales are .* of torch.float32": replace(kv, scales=scales.float()),
        r"scales are \(.*, 15\)": replace(kv, scales=scales[..., :15]),
    }
    for text, layer in wrong.items():
        with pytest.raises(ValueError, match=text):
            EIGHT.attention(step.batch, rows(count=2), layer, rows(count=2))
    plain = replace(make_step([1], [10], heads=HEADS).kv, scales=scales)
    with pytest.raises(ValueError, match="come with scales"):
        OPS.attention(step.batch, rows(count=2), plain, rows(count=2))
    assert not launched


def test_a_copy_names_blocks_that_are_there() -> None:
    with pytest.raises(ValueError, match="Blocks -1 to 4 were named; the pool has 4"):
        OPS.copy_blocks(torch.zeros(4, 64), [1, -1], [4, 2])
