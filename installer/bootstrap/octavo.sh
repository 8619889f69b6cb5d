#!/bin/sh
# Installs Octavo where there is no fitting Python (Linux, macOS):   sh installer/bootstrap/octavo.sh
# uv brings one. It is taken from PATH, or fetched by its makers' own script; what is fetched lies in the
# program's folder and goes with it when Octavo is uninstalled.
set -eu

cd "$(dirname "$0")/../.."
case "$(uname -s)" in
    Darwin) program="$HOME/Library/Application Support/Octavo Program" ;;
    *) program="${XDG_DATA_HOME:-$HOME/.local/share}/octavo-program" ;;
esac

fetch() {
    if command -v curl >/dev/null; then
        curl --proto '=https' --tlsv1.2 -LsSf "$1"
    elif command -v wget >/dev/null; then
        wget --https-only -qO- "$1"
    else
        echo "Fetching uv takes curl or wget. Install one of them, or uv itself, and start again." >&2
        return 1
    fi
}

PATH="$program/uv:$PATH"
if ! command -v uv >/dev/null; then
    echo "Fetching uv, which brings a Python, from astral.sh ..."
    script="$(fetch https://astral.sh/uv/install.sh)"
    printf '%s\n' "$script" | UV_UNMANAGED_INSTALL="$program/uv" sh
fi
UV_PYTHON_INSTALL_DIR="$program/python" UV_NO_CACHE=1
export UV_PYTHON_INSTALL_DIR UV_NO_CACHE
exec uv run --no-project --python 3.12 -m installer install "$@"
