"""`python3 -m installer WORD`: is this Python one that Octavo runs on? Then hand over to commands.py.

An old Python must be able to read this file (3.6 is tested), to be told what to do in one sentence. So
nothing is imported before the check, and nothing newer is written here.
"""

import sys

OLDEST, NEWEST = (3, 11), (3, 14)


def unsupported(version: tuple) -> str:
    """The sentence for a Python that Octavo does not run on; "" for one that it does."""
    if OLDEST <= tuple(version[:2]) <= NEWEST:
        return ""
    return (
        "Octavo needs Python 3.11 to 3.14 and this is {}.{}. With uv (docs.astral.sh/uv) it is one command: "
        "uv run --no-project --python 3.12 -m installer run"
    ).format(*version[:2])


def main() -> int:
    """The exit code of the word on the command line."""
    complaint = unsupported(sys.version_info)
    if complaint:
        print(complaint, file=sys.stderr)
        return 1
    from .commands import main as command

    return command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
