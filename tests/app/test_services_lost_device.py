"""A device fails in the middle of an answer: the program says so, gives its place to a new process, and there
the chat stands as it was and goes on. Real processes, a real engine; only the failure is made.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.app.fakes import make_home
from tests.source_tree import ROOT
from tests.tiny_models import write_tiny_gguf

# One life of the program: a message is sent in the first chat there is. In the first life the device fails at
# the seventh step after that; a life that was begun anew has one word more.
PROGRAM = """
import json, sys
from itertools import count
from pathlib import Path
from app.commands.anew import start_anew
from app.services import build
from app.settings import Home, Settings
from engine import EngineConfig
from engine.running.runner import Runner

home, model, *again = sys.argv[1:]
launch, steps, asked = Runner._launch, count(), False

def failing(runner, plan):
    if asked and not again and next(steps) == 6:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\\nmore")
    return launch(runner, plan)

def said(view):
    return [[each.role, each.text, each.error] for each in view.messages]

Runner._launch = failing
services = build(Settings(Home(Path(home)), model=model, engine=EngineConfig(backend="reference")))
chats, runtime = services.chats, services.runtime
runtime.start()
runtime.wait()
asked = True
before = [said(chats.view(each.id)) for each in chats.list_chats()]
chat = chats.list_chats()[0].id if again else chats.new_chat()
chats.send(chat, "And now?" if again else "Tell me a story")
version = chats.version(chat)
while chats.busy(chat):
    version = chats.wait(chat, version, 20)
    if again and chats.view(chat).messages[-1].text:
        chats.stop(chat)
print(json.dumps({"before": before, "after": said(chats.view(chat)), "fault": runtime.fault()}), flush=True)
lost = runtime.is_lost
services.close()
sys.exit(start_anew("again") if lost else 0)
"""


def test_the_chat_goes_on_in_a_new_process(tmp_path: Path) -> None:
    home, model = make_home(tmp_path / "home"), write_tiny_gguf(tmp_path / "tiny.gguf").path
    command = [sys.executable, "-c", PROGRAM, str(home.path), str(model)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = map(json.loads, done.stdout.splitlines())
    question, answer = first["after"]
    assert question == ["user", "Tell me a story", ""] and answer[1]
    reason = "cpu failed (CUDA error: an illegal memory access was encountered). Octavo has to start anew."
    assert reason in answer[2] and first["fault"] == reason and not first["before"]
    assert second["before"] == [[question, answer]], "what was said so far is there, with the reason"
    assert second["after"][:2] == [question, answer] and not second["fault"]
    assert [each[0] for each in second["after"][2:]] == ["user", "assistant"] and second["after"][3][1]
