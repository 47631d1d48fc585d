"""From the name a server gives a tool to the name it has here: a pure function of the two, in whatever order tools are found (N1)."""

import hashlib
import re
import unicodedata
from typing import Final

from agentic.services.tools.models import MAX_MODEL_NAME_LENGTH

MAX_TOOL_NAME: Final = 48
MAX_SHOWN_NAME: Final = 128
_CUT: Final = " […]"
_HASH_CHARACTERS: Final = 7
_REMOTE_NAME: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,128}")


def carriable(remote_name: object) -> bool:
    """Whether a name can be shown to people and sent back: text of 1 to 128 characters, none of them a control."""
    return isinstance(remote_name, str) and _REMOTE_NAME.fullmatch(remote_name) is not None


def visible(text: str) -> str:
    """Without controls, lone surrogates, private, tag and selector characters, by which text says to a model what no person sees."""
    return "".join(
        character
        for character in text
        if character in "\n\t"
        or (unicodedata.category(character) not in ("Cc", "Cs", "Co") and not "\U000e0000" <= character <= "\U000e01ef")
    )


def cut(text: str, max_bytes: int) -> str:
    """What can be seen of the beginning of a text, in at most so many bytes of UTF-8; ends with ` […]` when that is not all."""
    # nobody looks at every character of a megabyte
    words = visible(text[: 4 * max_bytes]).strip()
    if len(words.encode()) <= max_bytes and len(text) <= 4 * max_bytes:
        return words
    kept = words.encode()[: max_bytes - len(_CUT.encode())].decode(errors="ignore").rstrip()
    return kept and kept + _CUT


def shown(remote_name: str) -> str:
    """A server's name of a tool where people read it: at most 128 characters, the visible ones, on one line."""
    return " ".join(visible(remote_name[:MAX_SHOWN_NAME]).split())


def registry_name(server_id: str, remote_name: str) -> str:
    """The platform's name of a remote tool, `mcp.<server>.<name>`.

    Two names of one server may become one; who reads the catalog drops both. The model-facing form fits what providers take.

    Args:
        remote_name: as the server wrote it; what goes over the wire stays that.
    """
    words = re.sub(r"[^a-z0-9]+", "_", unicodedata.normalize("NFC", remote_name).lower()).strip("_")
    if not words or words[0].isdigit():
        words = f"t_{words}"
    room = min(MAX_TOOL_NAME, MAX_MODEL_NAME_LENGTH - len(f"mcp_{server_id}_"))
    if len(words) > room:
        tail = hashlib.sha256(remote_name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
        words = f"{words[: room - _HASH_CHARACTERS - 1]}_{tail}"
    return f"mcp.{server_id}.{words}"
