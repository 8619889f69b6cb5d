"""Numbers on their way between the host and a card, without either waiting for the other.

A card reads what is sent when it comes to it, maybe while the host writes the next: so what it reads is a
copy in pinned memory, which torch keeps until then. Where both are one machine's memory these are plain
copies.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def send(host: Tensor, card: Tensor) -> None:
    """card = host, in the order of the card's work; `host` may be written to at once."""
    card.copy_(host.pin_memory() if card.is_cuda else host, non_blocking=True)


def fetch(card: Tensor) -> Callable[[], Tensor]:
    """What the card has there once it has done all that it was given so far; called, it waits for that."""
    if not card.is_cuda:
        found = card.clone()
        return lambda: found
    host = torch.empty_like(card, device="cpu", pin_memory=True)
    host.copy_(card, non_blocking=True)
    done = torch.cuda.Event()
    done.record()

    def wait() -> Tensor:
        done.synchronize()
        return host

    return wait
