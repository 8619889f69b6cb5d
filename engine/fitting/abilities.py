"""Which device models run on and what it can do: pure functions of what torch and the system say.

A card here is any graphics processor that torch can compute on. An ability is something that a device's
hardware, or the compiler for it, has or has not; a format that needs an ability which is not there is served
all the same, by other kernels. Bytes unless said otherwise. Asks nothing itself: device.py does.
"""

from __future__ import annotations

from dataclasses import dataclass

# Kinds of device, the quickest first. torch calls both of the first two "cuda".
CARDS = ("cuda", "rocm", "xpu", "mps")
PROCESSOR = "cpu"
SERVED = ("cuda", "rocm", PROCESSOR)  # kinds that have kernels today
WORDS = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "XPU", "mps": "Metal"}

TRITON, BF16, INT8, FP8, FP4 = "Triton", "bf16", "INT8 units", "FP8 units", "FP4 units"
MATRIX = "Triton on matrix units"  # without it Triton multiplies on the plain cores, several times slower
# An ability -> NVIDIA's compute capability from which a card has it. bf16, FP8 and FP4: NVIDIA's matrix at
# https://nvidia.github.io/TransformerEngine/support_matrix.html. INT8: Turing's matrix units, 7.5, as in
# vLLM's table of hardware in docs/features/quantization. Triton: what its compiler made of trial kernels.
NVIDIA = {
    TRITON: (7, 5),
    INT8: (7, 5),
    MATRIX: (8, 0),
    BF16: (8, 0),
    FP8: (8, 9),
    FP4: (10, 0),
}
# The same for AMD, by how its architecture's name begins, the longest first: compiled by Triton for each.
AMD = (
    ("gfx950", (TRITON, MATRIX, BF16, INT8, FP8)),
    ("gfx94", (TRITON, MATRIX, BF16, INT8)),  # has FP8 units, of another FP8 than checkpoints use
    ("gfx90a", (TRITON, MATRIX, BF16, INT8)),
    ("gfx12", (TRITON, MATRIX, BF16, INT8, FP8)),
    ("gfx11", (TRITON, MATRIX, BF16, INT8)),
)
OTHERS = {"xpu": (TRITON, MATRIX, BF16, INT8), "mps": (BF16,)}


@dataclass(frozen=True, slots=True)
class Card:
    """A card as torch describes it. `memory_free` is measured: what other programs hold is not in it."""

    kind: str  # one of CARDS
    name: str
    memory_total: int
    memory_free: int
    capability: tuple[int, int] = (0, 0)  # NVIDIA's
    architecture: str = ""  # AMD's: "gfx1100"
    unified: bool = False  # its memory is the system's
    fault: str = ""  # why it is not used, as the end of a sentence: its check found something


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is. `container`: (limit, used) of the container this process runs in, None without one."""

    processor: str
    cores: int  # physical, as far as the system says
    memory_total: int
    memory_available: int
    container: tuple[int, int] | None = None
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device that can run a model. Memory in bytes; `reason` says why this one was taken."""

    name: str
    kind: str  # PROCESSOR or one of CARDS
    memory_total: int
    memory_available: int
    cores: int  # of the processor
    unified: bool  # its memory is the system's memory
    reason: str
    abilities: tuple[str, ...] = ()  # a processor's are kernels/'s to know


def abilities(card: Card) -> tuple[str, ...]:
    """What a card can do; nothing for one that is too old or not known."""
    if card.kind == "cuda":
        return tuple(ability for ability, least in NVIDIA.items() if card.capability >= least)
    if card.kind == "rocm":
        return next((has for start, has in AMD if card.architecture.startswith(start)), ())
    return OTHERS[card.kind]


def choose_device(machine: Machine, served: tuple[str, ...] = SERVED) -> DeviceFacts:
    """The quickest card of a kind that is served, the one with most free memory among equals; else the
    processor. A card that can do none of what kernels need, or computes wrongly, is as good as none.
    """
    total, available, limited = _system_memory(machine)
    able = [card for card in machine.cards if card.kind in served and abilities(card) and not card.fault]
    if not able:
        reason = "Models run on the processor." + limited
        reason += "".join(f" {_why_not(card, served)}" for card in machine.cards)
        return DeviceFacts(machine.processor, PROCESSOR, total, available, machine.cores, True, reason)
    card = min(able, key=lambda card: (CARDS.index(card.kind), -card.memory_free))
    reason = f"Models run on {card.name} ({WORDS[card.kind]})."
    if card.unified:  # what the driver would give it, and no more than the system has left
        total, available = min(total, card.memory_total), min(available, card.memory_free)
        reason += " Its memory is the system's." + limited
    else:
        total, available = card.memory_total, card.memory_free
    return DeviceFacts(
        card.name, card.kind, total, available, machine.cores, card.unified, reason, abilities(card)
    )


def _system_memory(machine: Machine) -> tuple[int, int, str]:
    """Total, available, and a sentence if a container has less than the machine."""
    total, available = machine.memory_total, machine.memory_available
    if machine.container is None:
        return total, available, ""
    limit, used = machine.container
    room = min(available, max(0, limit - used))
    return min(total, limit), room, " Its memory is limited by the container it runs in."


def _why_not(card: Card, served: tuple[str, ...]) -> str:
    if card.kind not in served:
        return f"{card.name} is not used: Octavo has no kernels for {WORDS[card.kind]} yet."
    if card.fault:
        return f"{card.name} is not used: {card.fault}."
    had = ".".join(map(str, card.capability)) if card.kind == "cuda" else card.architecture
    return f"{card.name} is not used: nothing is compiled for its architecture ({had or 'unknown'})."
