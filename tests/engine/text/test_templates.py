"""Chat templates render as with transformers; a hostile one costs 2 s and an error; helpers stand alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from engine import EngineStopped, TemplateError
from engine.text.template_worker import environment
from engine.text.templates import CHATML, MEMORY, TemplateRenderer
from tests.engine.text import chat_templates
from tests.engine.text.vocabularies import starter_tokenizer

TODAY = "2026-11-30"
ROOT = Path(__file__).resolve().parents[3]
DIALOGUE = [
    ("user", "Hi <b>&amp; 'you' \\n\n"),
    ("assistant", " 你好 🙂 "),
    ("user", "\ttwo\r\n{{ 1 }}{% if %}"),
]
SYSTEM = ("system", " Be brief. ")


@pytest.fixture
def renderer() -> Iterator[TemplateRenderer]:
    made = TemplateRenderer(None)
    yield made
    made.close()


def worker(renderer: TemplateRenderer) -> psutil.Process:
    assert renderer._worker
    return psutil.Process(renderer._worker.pid)


@pytest.mark.parametrize("name", [*chat_templates.FAITHFUL, "MISTRAL", "built in", "starter"])
def test_as_transformers_renders_it(name: str, starter_model: Path) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    known = chat_templates.FAITHFUL | {"MISTRAL": chat_templates.MISTRAL, "built in": CHATML}
    template = known.get(name) or starter_tokenizer(starter_model).chat_template
    renderer = TemplateRenderer(template, "<s>", "</s>")
    for turns in (DIALOGUE, [SYSTEM, *DIALOGUE], DIALOGUE[:1]):
        expected = render_jinja_template(
            [[{"role": role, "content": content} for role, content in turns]],
            chat_template=template,
            add_generation_prompt=True,
            bos_token="<s>",
            eos_token="</s>",
        )[0][0]
        assert renderer.render(turns, time.strftime("%Y-%m-%d")) == expected
    renderer.close()


def test_what_transformers_offers_is_there() -> None:
    template = (
        "{{ messages | tojson }}{% generation %}g{% endgeneration %}{{ tools is none }}"
        "{{ dict(a=1) | tojson }}"
        "{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"
        "{% set n = namespace(a=1) %}{% set n.a = n.a + 1 %}{{ n.a }}{{ bos_token }}{{ eos_token }}"
    )
    renderer = TemplateRenderer(template, "<s>", "</s>")
    expected = '[{"role": "user", "content": "é<"}]gTrue{"a": 1}012<s></s>'
    assert renderer.render([("user", "é<")], TODAY) == expected
    renderer.close()


def test_once_closed_it_starts_no_helper() -> None:
    renderer = TemplateRenderer("{{ messages | length }}")
    assert renderer.render([], TODAY) == "0"
    renderer.close()
    with pytest.raises(EngineStopped, match="no longer in memory"):
        renderer.render([("user", "hello")], TODAY)
    assert renderer._worker is None


def test_the_date_is_the_given_one() -> None:
    renderer = TemplateRenderer("{{ strftime_now('%d %b %Y, %H:%M') }}")
    assert renderer.render([], "2024-02-29") == "29 Feb 2024, 00:00"
    renderer.close()


def test_every_attack_costs_one_error_and_little_time() -> None:
    """The clock is the attack's own limit: an answer later than that is an error by another name."""
    assert len(chat_templates.HOSTILE) > 50

    def attack(bomb: str) -> str:
        sound = (
            "{% set a = 'a' %}{% set ten = messages | length * 10 %}{% if messages[0].content == 'attack' %}"
        )
        sound += bomb + "{% else %}fine{% endif %}"
        renderer = TemplateRenderer(sound)
        try:
            assert renderer.render([("user", "hello")], TODAY) == "fine"
            began = time.monotonic()
            with pytest.raises(TemplateError) as error:
                renderer.render([("user", "attack")], TODAY)
            assert time.monotonic() - began < 15  # 2 s and what a busy machine adds; without limit: hours
            assert renderer.render([("user", "again")], TODAY) == "fine"
            if renderer._worker and os.name == "posix" and sys.platform == "linux":
                assert worker(renderer).memory_info().vms <= MEMORY
            return str(error.value)
        finally:
            renderer.close()

    with ThreadPoolExecutor(6) as pool:
        texts = dict(zip(chat_templates.HOSTILE, pool.map(attack, chat_templates.HOSTILE), strict=True))
    assert all(text.startswith("The model's chat template ") and len(text) < 450 for text in texts.values())
    assert all(text.isprintable() for text in texts.values())  # half a character could not be stored
    assert sum("longer than 2 s" in text for text in texts.values()) >= 5


@pytest.mark.parametrize("template", chat_templates.BROKEN)
def test_a_broken_template_says_so(template: str) -> None:
    renderer = TemplateRenderer(template)
    for _ in range(2):
        with pytest.raises(TemplateError):
            renderer.render(DIALOGUE, TODAY)
    renderer.close()


def test_large_conversations_pass(renderer: TemplateRenderer) -> None:
    content = "é🙂" * 1_000_000
    assert content in renderer.render([("user", content)], TODAY)


def test_odd_text_passes(renderer: TemplateRenderer) -> None:
    content = "\x00\u2028\ud800 \U0010ffff\n\r"
    assert content in renderer.render([("user", content)], TODAY)


def test_threads_get_their_own_answers(renderer: TemplateRenderer) -> None:
    def render(n: int) -> bool:
        return f"number {n}<" in renderer.render([("user", f"number {n}")], TODAY)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(render, range(400)))
    assert renderer._worker


def test_renders_are_cached(renderer: TemplateRenderer) -> None:
    text = renderer.render(DIALOGUE, TODAY)
    renderer.close()
    assert renderer.render(DIALOGUE, TODAY) == text
    assert renderer._worker is None


def test_a_helper_that_was_killed_is_replaced(renderer: TemplateRenderer) -> None:
    renderer.start()
    for n in range(3):
        assert f"{n}<" in renderer.render([("user", str(n))], TODAY)
        worker(renderer).kill()


def test_the_helper_inherits_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither variables nor files, nor modules from the folder it is started in."""
    for name in ("jinja2.py", "json.py", "engine.py", "types.py"):
        (tmp_path / name).write_text("raise SystemExit('foreign')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("HF_TOKEN", "secret")
    renderer = TemplateRenderer("ok")
    with (tmp_path / "open").open("w"):
        assert renderer.render([], TODAY) == "ok"
        assert "HF_TOKEN" not in worker(renderer).environ()
        assert not worker(renderer).open_files()
        assert not worker(renderer).net_connections()
    renderer.close()


def test_the_helper_needs_nothing_but_jinja() -> None:
    """-I: not even this checkout on its path."""
    code = "import sys, runpy; runpy.run_path(sys.stdin.readline().strip()); print(*sys.modules)"
    path = ROOT / "engine" / "template_worker.py"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code], input=f"{path}\n", text=True, capture_output=True
    )
    loaded = {name.split(".")[0] for name in ran.stdout.split()}
    outside = {name for name in loaded if name not in sys.stdlib_module_names and not name.startswith("__")}
    assert outside - {"_distutils_hack", "sitecustomize", "x"} <= {"jinja2", "markupsafe", "_virtualenv"}
    assert environment().sandboxed


@pytest.mark.parametrize("busy", [False, True])
def test_the_helper_dies_with_its_parent(busy: bool) -> None:
    if busy and os.name != "posix":
        pytest.skip("Windows has no alarm; the loop ends with its 2 s only if the parent lives")
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    code = (
        "import sys, threading; from engine.text.templates import TemplateRenderer\n"
        "r = TemplateRenderer(sys.argv[1]); r.start()\n"
        "threading.Thread(target=r.render, args=([], '2026-11-30'), daemon=True).start()\n"
        "print(r._worker.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, loop if busy else "ok"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert parent.stdout
    helper = psutil.Process(int(parent.stdout.readline()))
    while busy and helper.cpu_times().user < 0.5:  # it is in the loop
        threading.Event().wait(0.01)
    parent.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    parent.wait()
    gone, alive = psutil.wait_procs([helper], timeout=30)
    assert gone or all(process.status() == psutil.STATUS_ZOMBIE for process in alive)
