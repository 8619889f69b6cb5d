"""What a person or a caller may decide about the engine; everything left at None is decided by
memory_plan.py, with its reason.

Frozen, standard library only. Sizes in bytes, lengths in tokens, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one loaded model."""

    context_length: int | None = None  # None: the model's own, at most what the pool can hold
    num_chats: int = 8  # how many chats of that length the pool should hold; more wait or share
    max_num_seqs: int = 16  # sequences in one step
    max_step_tokens: int = 512  # tokens in one step
    target_step_s: float = 0.25  # how long a step may take while answers stream beside a prompt
    block_size: int | None = None  # None: the backend's best
    kv_pool_bytes: int | None = None  # None: sized from the memory that is free
    memory_utilization: float = 0.9  # of what is free now, on cards with memory of their own
    backend: str = "auto"  # "auto", "numba", "reference"
    threads: int | None = None  # None: the processor's cores, one left over when there are more than four
