"""The fact ``url_seen``: every address of a call stood, exactly so, in something the user wrote or an earlier call returned.

A read that fetches an address the model chose is a way out for data: the address itself can carry it (ADR 0026). An address the
model only copied carries nothing new.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from agentic.services.policy.facts import AwaitableTexts, Fact
from agentic.services.tools.context import CallContext
from agentic.services.tools.registry import URL_SEEN

_ADDRESS = re.compile(r"""[a-z][a-z0-9+.-]*://[^\s<>"'`\\^{}|]+""", re.IGNORECASE)
_BARE_HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#]+", re.IGNORECASE)
_TAIL = ".,;:!?)]*_~"
"""What follows an address in a sentence or in Markdown and may or may not belong to it."""


def url_seen(texts: AwaitableTexts) -> Fact:
    """The fact, over the words of a run."""

    async def resolve(ctx: CallContext, args: BaseModel) -> bool:
        asked = set(_addresses_of(args.model_dump(mode="json")))
        if not asked:
            return False
        return asked <= seen_addresses(await texts(ctx))

    return Fact(name=URL_SEEN, type="bool", resolve=resolve)


def seen_addresses(texts: Iterable[str]) -> set[str]:
    """Every address in these texts, as it stands and without the punctuation that may follow it."""
    seen = set()
    for text in texts:
        for found in _ADDRESS.finditer(text):
            address = found[0]
            seen.add(address)
            while address[-1] in _TAIL:
                address = address[:-1]
                seen.add(address)
    return seen | {f"{address}/" for address in seen if _BARE_HOST.fullmatch(address)}  # how URL types write the same


def _addresses_of(value: Any) -> Iterator[str]:
    """The strings of the arguments that name an address, each whole: a query hidden behind a space does not get away."""
    match value:
        case str():
            if "://" in value or value.lstrip().startswith("//"):
                yield value
        case list():
            for item in value:
                yield from _addresses_of(item)
        case dict():
            for item in value.values():
                yield from _addresses_of(item)
