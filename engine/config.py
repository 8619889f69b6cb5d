"""What a person or a caller may decide about the engine. Sizes left at None are decided by memory_plan.py.

Frozen, standard library only. Sizes in bytes, lengths in tokens, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import BadRequest
from .types import check_limits

# name -> (least, most) of what a setting may be
LIMITS = {
    "context_length": (16, 2**24),
    "num_chats": (1, 2**16),
    "max_num_seqs": (1, 2**12),
    "max_step_tokens": (17, 2**16),
    "target_step_s": (0.001, 60.0),
    "block_size": (16, 128),
    "kv_pool_bytes": (1, 2**50),
    "memory_utilization": (0.01, 1.0),
    "threads": (1, 2**10),
    "swap_space": (0, 2**50),
}
LEAST_CONTEXT = 512  # tokens; with less than that nobody can chat
BACKENDS = ("auto", "numba", "triton", "reference")
SPECULATION = ("auto", "off")
KV_DTYPES = ("auto", "int8")
MADE_ELSEWHERE = ("awq", "gptq")  # quantizations that need more than the weights, so no load makes them
QUANTIZATIONS = ("auto", "none", *MADE_ELSEWHERE, "fp8", "int8", "int4")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one loaded model. Raises BadRequest for what no machine could do."""

    context_length: int | None = None  # None: the model's own, at most what the pool can hold
    num_chats: int = 8  # how many chats of that length the pool should hold; more wait or share
    max_num_seqs: int = 16  # sequences in one step
    max_step_tokens: int = 512  # tokens in one step
    target_step_s: float = 0.25  # how long a step of prompts alone may take
    speculation: str = "auto"  # one of SPECULATION
    block_size: int | None = None  # None: the backend's best
    kv_pool_bytes: int | None = None  # None: sized from the memory that is free
    swap_space: int | None = None  # bytes of the machine's memory for blocks that the device gives up
    kv_dtype: str = "auto"  # of the attention memory, one of KV_DTYPES; auto: the backend's own
    memory_utilization: float = 0.9  # of what is free now, on cards with memory of their own
    packed_cache: bool = True  # keep packed weights on disk, where there is room
    backend: str = "auto"  # one of BACKENDS
    quantization: str = (
        "auto"  # one of QUANTIZATIONS: to what, for unquantized weights; awq, gptq: they must be that
    )
    threads: int | None = None  # None: the processor's cores, one left over when there are more than four

    def __post_init__(self) -> None:
        check_limits(self, LIMITS)
        if self.block_size is not None and self.block_size % 16:
            raise BadRequest(f"block_size is {self.block_size}; it must be a multiple of 16.")
        for name, known in {
            "backend": BACKENDS,
            "speculation": SPECULATION,
            "quantization": QUANTIZATIONS,
            "kv_dtype": KV_DTYPES,
        }.items():
            if (value := getattr(self, name)) not in known:
                raise BadRequest(f"{name} is {value!r}; it must be one of {', '.join(known)}.")
        if self.max_step_tokens < self.max_num_seqs + 16:
            raise BadRequest(
                f"max_step_tokens is {self.max_step_tokens:,}; with max_num_seqs at {self.max_num_seqs:,} it "
                f"must be at least {self.max_num_seqs + 16:,}, or answers would leave prompts no room."
            )
