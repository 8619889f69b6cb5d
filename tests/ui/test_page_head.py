"""The lines after <head>: where they go, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from ui.page_head import SEARCHED, PageHead

HEAD = "<style>é</style>"


def passed(
    chunks: list[bytes], *headers: tuple[bytes, bytes], kind: bytes = b"text/html; charset=utf-8"
) -> list[Any]:
    """What comes out of a PageHead for one answer."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind), *headers]}
        )
        for place, chunk in enumerate(chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": place < len(chunks) - 1})

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(StopIteration):  # nothing in it waits for anything
        PageHead(app, HEAD)({"type": "http"}, None, send).send(None)  # type: ignore[arg-type]
    return sent


def body(sent: list[Any]) -> bytes:
    return b"".join(message["body"] for message in sent[1:])


@pytest.mark.parametrize("cut", range(0, 22))
def test_it_stands_after_head_however_the_page_is_cut(cut: int) -> None:
    page = b"<html><head><title>x</title>"
    sent = passed([page[:cut], page[cut:]], (b"content-length", str(len(page)).encode()))
    assert body(sent) == b"<html><head>" + HEAD.encode() + b"<title>x</title>"
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(page) + len(HEAD.encode())).encode()


def test_only_the_first_head_counts() -> None:
    assert body(passed([b"<head><head>"])).count(HEAD.encode()) == 1


@pytest.mark.parametrize(
    ("headers", "kind"),
    [([(b"content-encoding", b"gzip")], b"text/html"), ([], b"text/event-stream"), ([], b"application/json")],
)
def test_other_answers_pass_as_they_come(headers: list[tuple[bytes, bytes]], kind: bytes) -> None:
    chunks = [b"<head>", b"", b"x"]
    sent = passed(chunks, *headers, kind=kind)
    assert [message["body"] for message in sent[1:]] == chunks


def test_a_page_without_head_is_not_held_back() -> None:
    sent = passed([b"a" * SEARCHED, b"b", b"<head>"])
    assert [len(message["body"]) for message in sent[1:]] == [SEARCHED, 1, 6]
    assert body(passed([b"no head"])) == b"no head"
    assert body(passed([b""])) == b""
