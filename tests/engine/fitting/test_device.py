"""What the machine is said to be, with container limits made of real files in a folder of our own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as Fake

import psutil

from engine.fitting.abilities import Card
from engine.fitting.device import cgroup_memory, detect, read_cards, read_speed


def test_this_machine_is_described() -> None:
    facts = detect()
    assert facts.kind == "cpu" and facts.name
    assert 1 <= facts.cores <= (psutil.cpu_count() or 1)
    assert 0 < facts.memory_available <= facts.memory_total <= psutil.virtual_memory().total


def test_a_container_limit_counts_as_the_machines_memory(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("4294967296\n")
    (tmp_path / "memory.current").write_text("1073741824\n")
    facts = detect(tmp_path)
    assert facts.memory_total == 4 << 30
    assert facts.memory_available == 3 << 30
    assert "container" in facts.reason


def test_pages_of_files_make_room_in_a_container_too(tmp_path: Path) -> None:
    """A mapped model may fill a container that has room for it all the same."""
    (tmp_path / "memory.max").write_text("4294967296\n")
    (tmp_path / "memory.current").write_text("4000000000\n")
    (tmp_path / "memory.stat").write_text(
        "anon 1000\nfile 999\ninactive_file 1500000000\nactive_file 500000000\n"
    )
    assert cgroup_memory(tmp_path) == (4 << 30, 2_000_000_000)
    (tmp_path / "memory.stat").write_text("not numbers at all\n")
    assert cgroup_memory(tmp_path) == (4 << 30, 4_000_000_000)


def test_version_one_limits_are_read_and_no_limit_is_none(tmp_path: Path) -> None:
    assert cgroup_memory(tmp_path) is None
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("2147483648")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("5")
    assert cgroup_memory(tmp_path) == (2 << 30, 5)
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712")  # version 1's "none"
    assert cgroup_memory(tmp_path) is None
    (tmp_path / "memory.max").write_text("max")
    (tmp_path / "memory.current").write_text("7")
    assert cgroup_memory(tmp_path) is None


def torch_with(hip: str | None = None, num_cuda: int = 0, num_xpu: int = 0, mps: bool = False) -> Fake:
    """As much of torch as is asked."""

    def backend(num: int, **properties: object) -> Fake:
        return Fake(
            is_available=lambda: num > 0,
            device_count=lambda: num,
            get_device_properties=lambda index: Fake(name=f"card {index}", **properties),
            mem_get_info=lambda index: (3, 8),
        )

    return Fake(
        version=Fake(hip=hip),
        cuda=backend(num_cuda, major=8, minor=9, gcnArchName="gfx1100:sramecc-", is_integrated=0),
        xpu=backend(num_xpu),
        mps=Fake(recommended_max_memory=lambda: 100, driver_allocated_memory=lambda: 30),
        backends=Fake(mps=Fake(is_available=lambda: mps)),
    )


def test_cards_are_what_torch_says() -> None:
    assert read_cards(torch_with()) == []
    first, second = read_cards(torch_with(num_cuda=2))
    assert first == Card("cuda", "card 0", 8, 3, (8, 9)) and second.name == "card 1"
    assert read_cards(torch_with(hip="6.4", num_cuda=1)) == [
        Card("rocm", "card 0", 8, 3, architecture="gfx1100")
    ]
    assert read_cards(torch_with(num_xpu=1)) == [Card("xpu", "card 0", 8, 3)]
    (apple,) = read_cards(torch_with(mps=True))
    assert (apple.kind, apple.memory_total, apple.memory_free, apple.unified) == ("mps", 100, 70, True)


def test_a_driver_that_is_ill_is_no_card() -> None:
    def fail(index: int) -> None:
        raise RuntimeError("no CUDA-capable device is detected")

    torch = torch_with(num_cuda=1, num_xpu=1)
    torch.cuda.mem_get_info = fail
    assert [card.kind for card in read_cards(torch)] == ["xpu"]


def test_the_real_torch_answers_the_same_questions() -> None:
    assert all(isinstance(card, Card) for card in read_cards())


def test_memory_is_read_at_some_speed() -> None:
    assert 1e8 < read_speed(2) < 1e13
