"""The commands as a person types them: real processes and model, exit codes, one sentence for each error."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from app.settings import FOLDERS
from tests.source_tree import ROOT

TIMEOUT_S = 120  # the first to come compiles the kernels
# the starter talks for long
LONG = "List every country of the world with its capital, its rivers and its history."


def octavo(*words: str, home: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    env = {**os.environ, "OCTAVO_HOME": str(home)} if home else None
    command = [sys.executable, "-m", "app", *words]
    return subprocess.run(
        command, cwd=ROOT, env=env, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S
    )


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on stderr of a command that failed."""
    assert (done.returncode, done.stdout) == (1, ""), done
    (line,) = done.stderr.splitlines()
    assert line.startswith("octavo: ")
    return line


def test_chat_answers(starter_model: Path) -> None:
    done = octavo("chat", "What is the opposite of hot?", "--temperature", "0", "--max-tokens", "40")
    assert done.returncode == 0 and "cold" in done.stdout.lower(), done
    assert done.stderr == ""


def test_chat_as_json(starter_model: Path) -> None:
    words = ("chat", "--json", "--temperature", "0", "--seed", "1", "--max-tokens", "40")
    done = octavo(*words, "--model", str(starter_model), stdin="What is 2+2?")
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    assert "4" in answer["text"] and answer["finish_reason"] in ("stop", "length")
    cost = answer["usage"]
    assert 0 < cost["completion_tokens"] <= 40 and cost["prompt_tokens"] > 5
    assert cost["prompt_tokens_details"]["cached_tokens"] >= 0
    assert answer["first_token_s"] > 0 and answer["tokens_per_s"] > 0


def test_chat_s_bad_input(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.gguf"
    foreign.write_bytes(b"GIF89a" * 100)
    assert "The prompt is empty" in sentence(octavo("chat", "  ", home=tmp_path))
    missing = sentence(octavo("chat", "hello", home=tmp_path))
    assert "octavo models pull smollm2-135m" in missing
    assert "There is no model 'gpt-5'" in sentence(octavo("chat", "hello", "--model", "gpt-5", home=tmp_path))
    hot = sentence(octavo("chat", "hello", "--temperature", "9", home=tmp_path))
    assert "temperature is 9.0; it must lie between 0.0 and 5.0" in hot
    assert "foreign.gguf is not a GGUF file" in sentence(
        octavo("chat", "hello", "--model", str(foreign), home=tmp_path)
    )
    (tmp_path / "settings.toml").write_text("port = 'x'")
    assert "port is 'x'" in sentence(octavo("chat", "hello", home=tmp_path))


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nonsense",),
        ("chat", "x", "--max-tokens", "many"),
        ("serve", "--port", "70000"),
        ("models", "pull"),
        ("models", "show"),
        ("models", "remove", " "),
        ("chat", "x", "--model", ""),
        ("inspect", ""),
        ("serve", "--port", "9" * 5000),
    ],
)
def test_wrong_usage(words: tuple[str, ...], tmp_path: Path) -> None:
    done = octavo(*words, home=tmp_path)
    assert done.returncode == 2 and "usage: octavo" in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr) < 1000


def test_wrong_usage_is_explained_by_the_command_that_was_meant(tmp_path: Path) -> None:
    unknown = octavo("chat", "hello", "--wat", home=tmp_path).stderr
    assert unknown.startswith("usage: octavo chat ") and unknown.endswith("unrecognized arguments: --wat\n")
    assert "argument command: invalid choice: 'shwo'" in octavo("models", "shwo", home=tmp_path).stderr
    port = octavo("serve", "--port", "70000", home=tmp_path).stderr
    assert "port is 70000; it must lie between 1 and 65535, or be 0 for a free one." in port


def test_the_help_names_every_command() -> None:
    said = octavo("--help").stdout
    assert all(f"    {word} " in said for word in ("run", "chat", "serve", "key", "doctor", "models"))
    assert "`python3 -m installer uninstall`" in " ".join(said.split())


@pytest.mark.skipif(os.name == "nt", reason="it takes a POSIX shell")
@pytest.mark.parametrize(
    ("line", "code", "said", "complaint"),
    [
        ("key | true", 0, "", ""),
        ("models list | sed -n 2p | cut -c1-12", 0, "smollm2-135m\n", ""),
        ("models | head -1 | cut -c1-6", 0, "model \n", ""),
        ("key > /dev/full", 1, "", "octavo: The output can't be used: No space left on device.\n"),
        ("key >&-", 0, "", ""),
        ("models --json 2>&- | cut -c1-10", 0, '{"models":\n', ""),
        ("chat - <&-", 1, "", "octavo: The prompt is empty.\n"),
        ("chat <&-", 1, "", "octavo: The prompt is empty.\n"),
        ("chat ' ' 2>&-", 1, "", ""),
    ],
)
def test_streams_that_are_closed_or_full(
    tmp_path: Path, line: str, code: int, said: str, complaint: str
) -> None:
    if "full" in line and not os.path.exists("/dev/full"):
        pytest.skip("this system has no disk that is always full")
    env = {**os.environ, "OCTAVO_HOME": str(tmp_path)}
    env.pop("PYTHONUNBUFFERED", None)  # a buffer is written when the process ends
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m app {line}"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, said, complaint)


def test_an_encoding_that_holds_little() -> None:
    script = "from app.commands.terminal import *; prepare_streams(); print('é 你'); show_json({'a': 'é 🙂'})"
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True)
    first, second = done.stdout.decode("latin-1").splitlines()
    assert first == "é ?" and json.loads(second) == {"a": "é 🙂"}


def test_models(tmp_path: Path) -> None:
    listed = json.loads(octavo("models", "--json", home=tmp_path).stdout)["models"]
    assert [(model["id"], model["state"]) for model in listed[:3]] == [
        ("smollm2-135m", "missing"),
        ("qwen2.5-coder-1.5b", "missing"),
        ("smollm2-1.7b", "on the hub"),
    ]
    assert listed[2]["path"] is None and listed[2]["bytes"] is None
    assert Path(listed[0]["path"]) == tmp_path / "models/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf"
    table = octavo("models", home=tmp_path).stdout
    assert re.search(r"smollm2-135m +135 M +98\.4 MB +GGUF Q4_1 +Apache-2\.0 +missing", table)
    assert re.search(r"qwen3-8b +8\.2 B +~[\d.]+ GB +\S.* +Apache-2\.0 +on the hub", table)
    table, told = table.split("\n\n")
    head, *lines = table.splitlines()
    assert head.split() == ["model", "parameters", "size", "format", "licence", "state", "here"]
    for name in ("parameters", "size"):  # each number ends where its heading does
        end = head.index(name) + len(name)
        assert all(line[end - 1] != " " == line[end] for line in lines)
    assert all(re.search(r"  (fits|tight|too large|not served|recommended)$", line) for line in lines)
    best = re.match(r"Recommended: (\S+), (.+?)\. The ", told)
    assert best and [line.split()[0] for line in lines if line.endswith("recommended")] == [best[1]]
    again = octavo("models", "list", home=tmp_path).stdout.split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in again] == [line.split()[0] for line in (head, *lines)]
    assert max(map(len, table.splitlines())) <= 110
    assert "There is no model 'x'" in sentence(octavo("models", "pull", "x", home=tmp_path))
    hub = sentence(octavo("models", "pull", "qwen3-8b", home=tmp_path))
    assert hub == "octavo: HF_HUB_OFFLINE is set here, so the hub was not asked."
    missing = sentence(octavo("chat", "x", "--model", "gemma-3-1b", home=tmp_path))
    assert "gemma-3-1b is not on this machine. `octavo models pull gemma-3-1b` fetches it." in missing


def test_a_model_is_shown(tmp_path: Path) -> None:
    assert "There is no model 'x'" in sentence(octavo("models", "show", "x", home=tmp_path))
    shown = json.loads(octavo("models", "show", "qwen3-8b", "--json", home=tmp_path).stdout)
    fits = shown["choice"]["fits"]
    assert len(fits) == len(shown["variants"]) == 7 and shown["state"] == "on the hub"
    assert [fit["quality"] for fit in fits] == sorted(fit["quality"] for fit in fits)
    assert shown["device"]["kind"] == "cpu" and shown["read_speed"] > 0
    text = octavo("models", "show", "qwen3-8b", home=tmp_path).stdout
    line = r"GGUF Q4_K_M +about 5\.19 GB +[\d.]+ GB +8 +about [\d.e+]+ +\S.* +Qwen/Qwen3-8B-GGUF"
    assert re.search(line, text)
    assert "https://github.com/Lightning-AI/litgpt" in text and "Checked at the hub: not yet" in text
    assert shown["choice"]["reason"].split()[0] in text
    assert "\nfor chat, reasoning, languages\n" in text
    assert "quality (1 is best)" in text and "unserved" in shown
    (tmp_path / "settings.toml").write_text("context_length = 2048\nnum_chats = 1\n")
    assert "chats of 2,048" in octavo("models", "show", "smollm2-135m", home=tmp_path).stdout


def test_the_key(tmp_path: Path) -> None:
    first, again = (octavo("key", home=tmp_path).stdout for _ in range(2))
    assert first == again and re.fullmatch(r"octavo-[0-9a-f]{48}\n", first)
    folders = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert folders == set(FOLDERS)
    if os.name != "nt":
        assert {path.stat().st_mode & 0o77 for path in tmp_path.iterdir()} == {0}


def test_the_doctor(starter_model: Path, tmp_path: Path) -> None:
    done = octavo("doctor", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["problem"] == ""
    assert found["home"] == os.environ["OCTAVO_HOME"] and found["models"]["smollm2-135m"] == "ready"
    assert found["device"]["memory_available"] > 0 and found["device"]["reason"]
    assert len(found["memory_plan"]["reasons"]) >= 3 and found["load_s"] > 0
    assert found["versions"]["sqlite"].count(".") == 2 and found["versions"]["torch"]
    ill = octavo("doctor", home=tmp_path)
    assert ill.returncode == 1
    assert ill.stdout.startswith("The model does not answer: The model smollm2-135m is not on this machine")
    assert "memory shared with other programs: yes" in ill.stdout
    assert "secret" not in done.stdout and "octavo-" not in done.stdout


def serve(*words: str) -> tuple[subprocess.Popen[str], str]:
    """Start a server; its process and the line that says it is ready."""
    command = [sys.executable, "-m", "app", "serve", *words]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    return process, process.stdout.readline()


def end(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    process.send_signal(number)
    said, complaints = process.communicate(timeout=20)
    return process.returncode, said, complaints


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to end a process politely")
def test_serve(starter_model: Path) -> None:
    process, line = serve("--port", "0")
    found = re.fullmatch(r"(http://127\.0\.0\.1:(\d+)/v1) is ready\. key: (octavo-\w+)\n", line)
    assert found, (line, process.communicate())
    address, port, key = found.groups()
    try:
        body: dict[str, Any] = {"model": "smollm2-135m", "temperature": 0, "max_tokens": 12}
        body["messages"] = [{"role": "user", "content": "What is the opposite of hot?"}]
        with httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=30) as client:
            assert client.get(f"http://127.0.0.1:{port}/health").status_code == 200
            first, second = (client.post(f"{address}/chat/completions", json=body).json() for _ in range(2))
            assert "cold" in first["choices"][0]["message"]["content"]
            assert second["choices"][0]["message"] == first["choices"][0]["message"]
            assert second["usage"]["prompt_tokens_details"]["cached_tokens"] >= 16
            too_long = client.post(f"{address}/chat/completions", json={**body, "max_tokens": 100_000})
            assert too_long.status_code == 400 and "100" in too_long.json()["error"]["message"]
        taken = octavo("serve", "--port", port)
        assert f"Port {port} of 127.0.0.1 can't be used: another program uses it" in sentence(taken)
        listening = [c.laddr for c in psutil.Process(process.pid).net_connections() if c.status == "LISTEN"]
        assert listening == [("127.0.0.1", int(port))]
        words = Path(f"/proc/{process.pid}/cmdline")
        assert not words.exists() or key.encode() not in words.read_bytes()
    finally:
        ended = end(process, signal.SIGTERM)
    assert ended == (0, "", "")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to end a process politely")
def test_answers_end_when_the_server_does(starter_model: Path) -> None:
    process, line = serve("--port", "0")
    address, key = line.split()[0], line.split()[-1]
    body: dict[str, Any] = {"model": "smollm2-135m", "stream": True, "messages": []}
    body["messages"] = [{"role": "user", "content": LONG}]
    headers = {"authorization": f"Bearer {key}"}
    with httpx.stream(
        "POST", f"{address}/chat/completions", json=body, headers=headers, timeout=30
    ) as answer:
        events = answer.iter_lines()
        assert "assistant" in next(events)
        process.send_signal(signal.SIGTERM)
        *_, last, done = filter(None, events)
    assert "Octavo is ending" in last and done == "data: [DONE]"
    assert end(process, signal.SIGTERM) == (0, "", "")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to end a process politely")
def test_ctrl_c(starter_model: Path, tmp_path: Path) -> None:
    process, line = serve("--port", "0")
    assert "ready" in line
    assert end(process, signal.SIGINT) == (0, "", "")
    command = [sys.executable, "-m", "app", "chat", LONG, "--temperature", "0"]
    chat = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert chat.stdout and chat.stdout.read(1)
    code, _, complaints = end(chat, signal.SIGINT)
    assert (code, complaints) == (130, "\n")


def test_serve_without_a_model(tmp_path: Path) -> None:
    assert "octavo models pull" in sentence(octavo("serve", "--port", "0", home=tmp_path))
