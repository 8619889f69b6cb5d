"""One file over HTTP, cut at every percent, changed, sent on, refused: whole and right, or not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.errors import PullFailed
from app.models import transfer
from app.models.transfer import Part, Transfer
from tests.app.fake_hub import FakeHub, Handler, Repo, gguf_repo, serving_hub, sha256

TOKEN = "hf_a-token-that-must-not-get-out"
NAME = "tiny-Q4_0.gguf"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving_hub(monkeypatch) as hub:
        hub.token = TOKEN
        yield hub


@pytest.fixture
def repo(hub: FakeHub) -> Repo:
    return hub.add(gguf_repo(size=10_000))


def part_of(hub: FakeHub, repo: Repo, name: str = NAME) -> Part:
    content = repo.files[name]
    return Part(name, f"{hub.url}/{repo.name}/resolve/{repo.revision}/{name}", len(content), sha256(content))


def fetch(hub: FakeHub, part: Part, folder: Path, tell: Callable[[str, int], None] = lambda *_: None) -> None:
    moving = Transfer("maker/Tiny-GGUF", hub.url, TOKEN, waits=(0.0, 0.0))
    try:
        moving.fetch(part, folder, tell)
    finally:
        moving.close()


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def cdn(repo: Repo, name: str = NAME) -> str:
    return f"/cdn/{sha256(repo.files[name])}"


def test_cut_at_every_percent_it_goes_on_there(hub: FakeHub, repo: Repo, tmp_path: Path) -> None:
    content, seen = repo.files[NAME], []
    hub.faults[cdn(repo)] = lambda handler: handler.send(content, most=len(content) // 100)
    fetch(hub, part_of(hub, repo), tmp_path, lambda stage, size: seen.append((stage, size)))
    assert (tmp_path / NAME).read_bytes() == content and left(tmp_path) == [NAME]
    ranges = [headers.get("range") for path, headers in hub.asked if path == cdn(repo)]
    assert ranges == [None, *(f"bytes={100 * percent}-" for percent in range(1, 100))]
    assert seen == [*(("fetching", 100 * n) for n in range(1, 101)), ("checking", 10_000)]


@pytest.mark.parametrize("percent", range(0, 100, 7))
def test_cut_once_and_taken_up_by_another_process(
    hub: FakeHub, repo: Repo, tmp_path: Path, percent: int
) -> None:
    content = repo.files[NAME]

    class Killed(Exception): ...

    def die(stage: str, size: int) -> None:
        if size >= percent * 100:
            raise Killed

    with pytest.raises(Killed):
        fetch(hub, part_of(hub, repo), tmp_path, die)
    draft = tmp_path / f"{NAME}.part"
    draft.write_bytes(content[: percent * 100])  # what had reached the disk
    fetch(hub, part_of(hub, repo), tmp_path)
    assert (tmp_path / NAME).read_bytes() == content and left(tmp_path) == [NAME]


def test_another_file_under_the_same_name_is_not_joined_to_the_old_one(
    hub: FakeHub, repo: Repo, tmp_path: Path
) -> None:
    content = repo.files[NAME]
    (tmp_path / f"{NAME}.part").write_bytes(b"x" * 5_000)
    (tmp_path / f"{NAME}.etag").write_text('"an older version"')
    fetch(hub, part_of(hub, repo), tmp_path)
    assert (tmp_path / NAME).read_bytes() == content


def test_without_an_etag_or_with_a_weak_one_it_begins_anew(hub: FakeHub, repo: Repo, tmp_path: Path) -> None:
    content, cut = repo.files[NAME], [4_000, 10_000]
    hub.faults[cdn(repo)] = lambda handler: handler.send(content, most=cut.pop(0), etag='W/"weak"')
    fetch(hub, part_of(hub, repo), tmp_path)
    assert (tmp_path / NAME).read_bytes() == content
    assert not [headers for _, headers in hub.asked if "range" in headers]


def refuse(status: int, **headers: str) -> Callable[[Handler], None]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.say(status, {}, named)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (refuse(401), r"does not show maker/Tiny-GGUF to everyone \(401\).*token"),
        (refuse(403), r"maker/Tiny-GGUF is gated \(403\): accept its terms"),
        (refuse(404), rf"no {NAME} in maker/Tiny-GGUF any more \(404\)"),
        (refuse(418), "answered 418"),
        (
            refuse(429, Retry_After="300"),
            r"asks to wait 300 s \(429.*What is here stays: 0 bytes of 10\.0 kB",
        ),
        (refuse(503), r"did not come: the hub answered 503"),
        (refuse(416), "answered 416"),
        (refuse(302, Location="/cdn/loop"), "6 times, to no end"),
        (refuse(302, Location="https://evil.example/x"), "evil.example, which is none of its own"),
        (refuse(302, Location="https://huggingface.co.evil.example/x"), "none of its own places"),
        (refuse(302, Location="http://169.254.169.254/latest"), "169.254.169.254"),
        (refuse(302, Location="file:///etc/passwd"), "none of its own places"),
        (lambda handler: handler.send(b"y" * 10_000), "came with the SHA-256 [0-9a-f]{64} instead of"),
        (lambda handler: handler.send(b"y" * 9_000), "has 9000 bytes at the hub instead of 10000"),
        (lambda handler: handler.send(b"y" * 10_000, most=0), "the connection was lost"),
    ],
)
def test_what_can_go_wrong_is_one_sentence_and_can_be_tried_again(
    hub: FakeHub, repo: Repo, tmp_path: Path, fault: Callable[[Handler], None], said: str
) -> None:
    hub.faults.update({cdn(repo): fault, "/cdn/loop": refuse(302, Location="/cdn/loop")})
    with pytest.raises(PullFailed, match=said) as raised:
        fetch(hub, part_of(hub, repo), tmp_path)
    assert NAME not in left(tmp_path) and TOKEN not in str(raised.value)
    hub.faults.clear()
    fetch(hub, part_of(hub, repo), tmp_path)
    assert (tmp_path / NAME).read_bytes() == repo.files[NAME] and left(tmp_path) == [NAME]


def test_a_short_wait_that_the_hub_asks_for_is_waited(hub: FakeHub, repo: Repo, tmp_path: Path) -> None:
    content, stages = repo.files[NAME], []
    answers = [refuse(429, Retry_After="1"), lambda handler: handler.send(content)]
    hub.faults[cdn(repo)] = lambda handler: answers.pop(0)(handler)
    fetch(hub, part_of(hub, repo), tmp_path, lambda stage, size: stages.append(stage))
    assert stages[0] == "waiting" and stages[-1] == "checking" and left(tmp_path) == [NAME]


def test_silence_is_not_waited_for_for_ever(
    hub: FakeHub, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    monkeypatch.setattr(transfer, "SILENT_S", 0.2)
    content, over = repo.files[NAME], threading.Event()

    def stall(handler: Handler) -> None:
        over.wait(10)
        handler.close_connection = True

    hub.faults[cdn(repo)] = lambda handler: handler.send(content, most=0, pause=stall)
    with pytest.raises(PullFailed, match=r"nothing came for 0\.2 s"):
        fetch(hub, part_of(hub, repo), tmp_path)
    over.set()


def test_the_token_goes_to_the_hub_alone(
    hub: FakeHub, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.gated = True
    with serving_hub(monkeypatch) as other:
        other.add(repo)
        monkeypatch.setattr(transfer, "_is_own_place", lambda url: url.startswith(other.url))
        part = part_of(hub, repo)
        hub.faults[f"/{repo.name}/resolve/{repo.revision}/{NAME}"] = refuse(
            302, Location=other.url + cdn(repo)
        )
        fetch(hub, part, tmp_path)
        assert [headers.get("authorization") for _, headers in hub.asked] == [f"Bearer {TOKEN}"]
        assert [headers.get("authorization") for _, headers in other.asked] == [None]
    assert (tmp_path / NAME).read_bytes() == repo.files[NAME]


def test_a_range_that_was_not_asked_for_is_not_joined(hub: FakeHub, repo: Repo, tmp_path: Path) -> None:
    content = repo.files[NAME]
    (tmp_path / f"{NAME}.part").write_bytes(content[:4_000])
    (tmp_path / f"{NAME}.etag").write_text('"x"')

    def other(handler: Handler) -> None:
        if "range" not in handler.headers:
            return handler.send(content)
        handler.send_response(206)
        handler.send_header("Content-Range", "bytes 5000-9999/10000")
        handler.send_header("Content-Length", "5000")
        handler.end_headers()
        handler.wfile.write(content[5_000:])

    hub.faults[cdn(repo)] = other
    fetch(hub, part_of(hub, repo), tmp_path)
    assert (tmp_path / NAME).read_bytes() == content


def test_an_empty_file_is_made(hub: FakeHub, tmp_path: Path) -> None:
    repo = hub.add(Repo("maker/Tiny-GGUF", {"empty.txt": b""}))
    fetch(hub, part_of(hub, repo, "empty.txt"), tmp_path)
    assert left(tmp_path) == ["empty.txt"] and not (tmp_path / "empty.txt").stat().st_size


def test_what_is_cut_and_can_t_go_on_is_not_fetched_for_ever(
    hub: FakeHub, repo: Repo, tmp_path: Path
) -> None:
    content, path = repo.files[NAME], cdn(repo)

    def half(handler: Handler) -> None:
        assert len(hub.paths(path)) < 20
        if "range" in handler.headers:
            return refuse(416)(handler)
        handler.send(content, most=5_000)

    hub.faults[path] = half
    with pytest.raises(PullFailed, match="did not come"):
        fetch(hub, part_of(hub, repo), tmp_path)
    assert len(hub.paths(path)) == 4


def test_small_files_are_checked_by_the_name_that_git_gives_them(
    hub: FakeHub, repo: Repo, tmp_path: Path
) -> None:
    git = next(file["blobId"] for file in repo.info()["siblings"] if file["rfilename"] == "README.md")
    part = Part("README.md", f"{hub.url}/{repo.name}/resolve/{repo.revision}/README.md", 5, git)
    fetch(hub, part, tmp_path)
    assert (tmp_path / "README.md").read_bytes() == b"hello"
    (tmp_path / "README.md").unlink()
    with pytest.raises(PullFailed, match="git id"):
        fetch(hub, Part(part.name, part.url, 5, "0" * 40), tmp_path)
