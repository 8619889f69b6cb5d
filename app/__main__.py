"""`python -m app COMMAND`: the commands of commands.py, as `octavo COMMAND` has them.

The page is not among them.
"""

from __future__ import annotations

import sys

from .commands.commands import main

sys.exit(main())
