"""Asks a vendor whether it takes the credential of a connection, by the cheapest question it documents.

The question never costs and changes nothing, here or there.
A vendor that documents no question without a price is not asked. What comes back is judged by its status and by fields, never by words.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from agentic.contract.clock import Clock
from agentic.contract.errors import AgenticError
from agentic.services.tools.connections import Account, Connection
from agentic.services.tools.handlers.email.nylas import GRANT_FACT, NYLAS
from agentic.services.tools.handlers.http import GovernedClient
from agentic.services.tools.handlers.reply import Reply

TIMEOUT_S = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Probed:
    """What asking brought.

    Attributes:
        asked: method and address; ``None`` when nobody was asked.
        accepted: whether the vendor takes the credential; ``None`` when that is not known.
        said: the same in words for an operator.
    """

    asked: str | None
    accepted: bool | None
    said: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One question.

    Attributes:
        path: of the facts of the account; ``None`` when they do not lead to one.
        fault: of what a 200 holds, why it is no yes; ``None`` when it is one.
        refusals: statuses that refuse the credential.
    """

    path: Callable[[Mapping[str, str]], str | None]
    fault: Callable[[Mapping[str, Any]], str | None] = lambda _content: None
    refusals: frozenset[int] = frozenset({401, 403})


def _grant_path(facts: Mapping[str, str]) -> str | None:
    grant = facts.get(GRANT_FACT)
    return f"/v3/grants/{quote(grant, safe='')}" if grant else None


def _grant_fault(content: Mapping[str, Any]) -> str | None:
    data = content.get("data")
    status = data.get("grant_status") if isinstance(data, dict) else None
    return None if status == "valid" else "the mailbox has to be connected again at the vendor: its grant is not valid"


QUESTIONS: Mapping[str, Question] = {
    NYLAS: Question(path=_grant_path, fault=_grant_fault),
    "hunter": Question(path=lambda _facts: "/v2/account", refusals=frozenset({401})),  # its 403 means slow down
    "firecrawl": Question(path=lambda _facts: "/v2/team/credit-usage"),
    "fullenrich": Question(path=lambda _facts: "/api/v2/account/keys/verify"),
}


async def probe(account: Account, *, origins: Mapping[str, str], clock: Clock) -> Probed:
    """Ask the vendor of an account, once. A token that is due is renewed first; nothing else changes.

    Args:
        account: with its credential.
        origins: where vendors are reached, by provider key.
    """
    question, origin = QUESTIONS.get(account.provider), origins.get(account.provider)
    if question is None or origin is None:
        return Probed(asked=None, accepted=None, said=f"{account.provider} documents no question that costs nothing")
    path = question.path(account.shown)
    if path is None:
        return Probed(
            asked=None, accepted=None, said=f"the connection has no fact {GRANT_FACT}, so there is nothing to ask for"
        )
    asked = f"GET {origin}{path}"
    connection = Connection(account, used=lambda _secrets: None)
    try:
        async with GovernedClient(
            origin=origin,
            headers={"accept": "application/json"},
            auth=connection.authorize,
            deadline=clock.monotonic() + TIMEOUT_S,
            clock=clock,
        ) as client:
            reply = await client.get(path)
    except AgenticError as error:
        return Probed(asked=asked, accepted=None, said=f"it could not be asked: {error}")
    return _judged(asked, reply, question)


def _judged(asked: str, reply: Reply, question: Question) -> Probed:
    if reply.status in question.refusals:
        return Probed(
            asked=asked, accepted=False, said=f"the vendor answered {reply.status}: it does not take the credential"
        )
    if reply.status == 404:
        return Probed(asked=asked, accepted=False, said="the vendor answered 404: it knows no such account")
    if reply.status != 200:
        return Probed(
            asked=asked, accepted=None, said=f"the vendor answered {reply.status}, which says nothing of the credential"
        )
    fault = question.fault(_object(reply))
    return Probed(asked=asked, accepted=fault is None, said=fault or "the vendor takes the credential")


def _object(reply: Reply) -> Mapping[str, Any]:
    try:
        content = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
