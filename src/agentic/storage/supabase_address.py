"""Where a Supabase project is, and that its key may be sent there."""

from typing import Final
from urllib.parse import urlsplit

from agentic.contract.errors import ProgramFault

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def project_url(url: str, *, of: str) -> str:
    """The URL without a slash at its end.

    Args:
        url: of the project, such as ``https://abc.supabase.example``; plain ``http`` for loopback alone.
        of: what is there, for the message.

    Raises:
        ProgramFault: the URL is not one a key may be sent to.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ProgramFault(f"the URL of {of} begins with https://; the key is not sent in the clear")
    return url.rstrip("/")
