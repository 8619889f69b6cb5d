"""What pages see of the memory: the engine's pictures, and how much the machine has free now.

Which model is there is runtime.py's to know.
"""

from __future__ import annotations

from engine import MemoryPicture as MemoryPicture, PoolPicture as PoolPicture, detect


def free_memory() -> int:
    """Bytes that any program could have now."""
    return detect().memory_available
