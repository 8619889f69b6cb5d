"""The Hugging Face hub as this program asks it: about one repository, or for those that match some words.

By the hub's own client, so the person's proxy and certificates count. Whatever goes wrong is one sentence.
Nothing here is called unless a person asked for it, and nothing at all where the settings say `offline`.
Moves no files (transfer.py does) and knows nothing of what the engine serves.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..errors import HubFailed
from ..settings import Settings
from .transfer import Transfer

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

Answer = TypeVar("Answer")
TIMEOUT_S = 20
MOST = 40  # repositories that a search gives, of each kind
LONGEST = 200  # characters of what is searched for
Kind = Literal["gguf", "safetensors"]
# what a search wants to know of each repository
WANTED: list[Any] = ["gguf", "safetensors", "config", "cardData", "downloads", "gated", "siblings", "sha"]
OFFLINE = "Octavo is set to stay offline (`offline = true`), so the hub was not asked."
UNNAMED = "its name is not known here. Is this machine online?"
# status -> what the person is told; {repo} {wait}
ANSWERS = {
    401: "The hub has no {repo}, or does not show it to everyone (401).",
    403: "The hub does not show {repo} to you (403): its makers want to be asked first.",
    404: "The hub has no {repo} (404).",
    429: "The hub asks to wait{wait} before it is asked again (429, too many requests).",
}


class Hub:
    """`token` gives the person's token for the hub, None if there is none."""

    def __init__(self, settings: Settings, token: Callable[[], str | None] = lambda: None) -> None:
        self._settings, self.token = settings, token

    def adopt(self, settings: Settings) -> None:
        """Follow new settings."""
        self._settings = settings

    @property
    def offline(self) -> bool:
        """The settings forbid to ask the hub."""
        return self._settings.offline

    def look(self, repo: str) -> ModelInfo:
        """A repository as it is now, its files with sizes and hashes. Raises HubFailed."""
        from huggingface_hub import HfApi

        def ask(token: str | bool) -> ModelInfo:
            api = HfApi(endpoint=self._settings.hub, token=token)
            return api.model_info(repo, files_metadata=True, timeout=TIMEOUT_S)

        return self._ask(repo, ask)

    def search(self, text: str, kind: Kind) -> list[ModelInfo]:
        """Repositories with models of one kind that match, the most downloaded first. Raises HubFailed.

        Not by HfApi.list_models, which tries for half a minute where the hub can't be reached.
        """
        from huggingface_hub.hf_api import ModelInfo
        from huggingface_hub.utils._headers import build_hf_headers
        from huggingface_hub.utils._http import get_session, hf_raise_for_status

        kinds = ["gguf"] if kind == "gguf" else ["safetensors", "text-generation"]
        wanted: dict[str, Any] = {"filter": kinds, "search": text[:LONGEST], "expand": WANTED}

        def ask(token: str | bool) -> list[ModelInfo]:
            answer = get_session().get(
                f"{self._settings.hub}/api/models",
                params={**wanted, "sort": "downloads", "limit": MOST},
                headers=build_hf_headers(token=token),
                timeout=TIMEOUT_S,
            )
            hf_raise_for_status(answer)
            return [ModelInfo(**{"siblings": None, **found}) for found in answer.json()]

        return self._ask(text[:LONGEST], ask)

    def address(self, repo: str, revision: str, name: str) -> str:
        """Where a file is fetched from."""
        from urllib.parse import quote

        return f"{self._settings.hub}/{repo}/resolve/{revision}/{quote(name)}"

    def transfer(self, repo: str) -> Transfer:
        """What fetches the repository's files. Raises HubFailed where the settings say `offline`."""
        if self.offline:
            raise HubFailed(OFFLINE)
        return Transfer(repo, self._settings.hub, self.token())

    def _ask(self, repo: str, question: Callable[[str | bool], Answer]) -> Answer:
        if self.offline:
            raise HubFailed(OFFLINE)
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

        try:
            return question(self.token() or False)
        except OfflineModeIsEnabled as error:
            raise HubFailed("HF_HUB_OFFLINE is set here, so the hub was not asked.") from error
        except HFValidationError as error:
            raise HubFailed(
                f"{repo:.100} is no name of a repository: at the hub it is OWNER/NAME."
            ) from error
        except HfHubHTTPError as error:
            status = error.response.status_code
            after = error.response.headers.get("retry-after", "")
            wait = f" {after} s" if after.isdecimal() else ""
            said = ANSWERS.get(status, f"The hub answered {status} when it was asked about {{repo}}.")
            raise HubFailed(said.format(repo=repo, wait=wait), status) from error
        except (
            Exception
        ) as error:  # the client's HTTP library has errors of its own, with no base of Python's
            if _is_unnamed(error):
                raise HubFailed(f"The hub can't be reached: {UNNAMED}") from error
            words = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
            raise HubFailed(f"The hub can't be reached: {words.rstrip('.')}.") from error


def _is_unnamed(error: BaseException | None) -> bool:
    """Whether it comes of a name that the network knows no address for."""
    while error and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__
    return error is not None
