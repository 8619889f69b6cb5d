"""The marks of a sequence: what is known, expected and ready to be computed."""

from __future__ import annotations

from engine.scheduling.block_pool import Chain, Identity
from engine.scheduling.sequence import Sequence


def sequence(prompt: int = 10, max_length: int = 20) -> Sequence:
    seq = Sequence("s", list(range(prompt)))
    seq.max_length = max_length
    return seq


def test_a_new_sequence_has_its_prompt_to_do() -> None:
    seq = sequence()
    assert seq.num_prompt == seq.num_expected == seq.num_todo == 10
    seq.tokens.append(99)
    assert seq.num_prompt == 10 and seq.prompt == list(range(10)) and seq.num_todo == 11


def test_a_token_in_flight_can_be_planned_before_it_is_known() -> None:
    seq = sequence()
    seq.num_scheduled = 10
    assert seq.num_todo == 0
    seq.num_awaited = 1
    assert seq.num_expected == 11 and seq.num_todo == 1


def test_while_drafts_are_in_flight_nothing_can_be_planned() -> None:
    seq = sequence()
    seq.num_scheduled, seq.num_awaited = 12, 3
    assert seq.num_todo == 0


def test_the_last_token_is_never_computed() -> None:
    seq = sequence(max_length=11)
    seq.num_scheduled, seq.num_awaited = 10, 1
    assert seq.num_expected == seq.max_length and seq.num_todo == 0


def test_each_block_is_hashed_once_and_chains_follow_the_tokens() -> None:
    root = Chain.root(b"", Identity("", "", "", "", 4))
    seq = sequence()
    seq.root = root
    second = seq.chain(1, 4)
    assert len(seq.chains) == 2 and seq.chain(1, 4) is second
    assert second.same(root.extend((0, 1, 2, 3)).extend((4, 5, 6, 7)))
    seq.tokens += [10, 11]
    assert seq.chain(2, 4).tokens == (8, 9, 10, 11) and seq.chains[1] is second
