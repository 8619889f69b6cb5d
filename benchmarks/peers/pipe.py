"""The language of a comparison's sides: one JSON object a line, asked on stdin, answered on stdout.

`times` are seconds from the start of a run to each token of each prompt; all is greedy, the end token
ignored. A prompt may come late: when the first chat has had `after` tokens. Its answer is the last of the
lists, and the run ends with its first token. `share` keeps what the run before computed. Runs in each side's
own Python: standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

# load   seqs, context, keep?           -> seconds                 (again: load again); keep: a folder
#                                         for what other processes need not compute again
# close                                 -> nothing                 the model; all is kept by then
# run    prompts, tokens, late?, share? -> ids, times              late: {"prompt": [...], "after": 32}
# sizes                                 -> weights, kv             in bytes
# score  ids, keep, path                -> logprobs                the first `keep` logits go to path, as .npy
# anything, when it cannot be done      -> error


def serve(side: Any) -> None:
    """Answer with the side's method of that name until stdin ends. What libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = getattr(side, asked.pop("op"))(**asked)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
