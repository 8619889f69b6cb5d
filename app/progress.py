"""What is told how far something is that takes a while: loading, a download, a file that is checked.

Called in the thread that does it, as often as there is something new. What it raises ends the work.
"""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]  # what is being done, and how far it is, from 0 to 1
