"""What can stop the installer, as a sentence for the person in front of it: what happened and what to do.

One base; `__main__` prints its text and ends with code 1. Anything else that is raised is a bug of ours.
"""

from __future__ import annotations


class SetupError(Exception):
    """The set-up cannot go on; the text says why and what to do."""
