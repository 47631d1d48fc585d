"""Lists of messages: the vendor's filters and pages, over what the mailbox holds."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentic.local.providers.mail.messages import Message, Participant

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
_PEOPLE = ("from", "to", "cc", "bcc")
_PLAIN = ("subject", "any_email", *_PEOPLE, "thread_id", "in", "unread", "starred", "has_attachment")
_TIMES = ("received_before", "received_after")
_KNOWN = frozenset({"limit", "page_token", "select", "metadata_pair", *_PLAIN, *_TIMES})


class BadQuery(ValueError):
    """The query asks for something this provider cannot give; the text names it."""


def page(messages: Sequence[Message], query: Mapping[str, str]) -> tuple[list[dict[str, Any]], str | None]:
    """One page, newest first, and the token of the next.

    Args:
        messages: oldest first.

    Raises:
        BadQuery: an unknown parameter, or a limit, time or token out of range.
    """
    unknown = sorted(set(query) - _KNOWN)
    if unknown:
        raise BadQuery(f"not supported here: {', '.join(unknown)}")
    limit = _whole(query, "limit", DEFAULT_LIMIT)
    if not 1 <= limit <= MAX_LIMIT:
        raise BadQuery(f"limit must be 1 to {MAX_LIMIT}")
    start = _whole(query, "page_token", 0)
    found = [message for message in reversed(messages) if _matches(message, query)]
    chosen = [selected(message, query) for message in found[start : start + limit]]
    return chosen, str(start + limit) if start + limit < len(found) else None


def selected(message: Message, query: Mapping[str, str]) -> dict[str, Any]:
    """The message with the fields that ``select`` names; all of them without it."""
    data = message.as_data()
    if "select" not in query:
        return data
    return {name: data[name] for name in map(str.strip, query["select"].split(",")) if name in data}


def _matches(message: Message, query: Mapping[str, str]) -> bool:
    content = message.content
    people: dict[str, tuple[Participant, ...]] = {
        "from": (message.sender,),
        "to": content.to,
        "cc": content.cc,
        "bcc": content.bcc,
    }
    everyone = tuple(person for group in people.values() for person in group)
    key, _, value = query.get("metadata_pair", "").partition(":")
    return all(
        (
            query.get("subject", "").casefold() in content.subject.casefold(),
            "any_email" not in query or _has(everyone, query["any_email"]),
            all(name not in query or _has(people[name], query[name]) for name in _PEOPLE),
            query.get("thread_id", message.thread_id) == message.thread_id,
            query.get("in", message.folder).upper() == message.folder,
            "unread" not in query or (query["unread"] == "true") == message.unread,
            query.get("starred", "false") == "false",
            "has_attachment" not in query or (query["has_attachment"] == "true") == bool(content.attachments),
            "received_before" not in query or message.date < _whole(query, "received_before", 0),
            "received_after" not in query or message.date > _whole(query, "received_after", 0),
            "metadata_pair" not in query or content.metadata.get(key) == value,
        )
    )


def _has(people: Sequence[Participant], wanted: str) -> bool:
    addresses = {address.strip().casefold() for address in wanted.split(",")}
    return any(person.email.casefold() in addresses for person in people)


def _whole(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit()):
        raise BadQuery(f"{name} must be a whole number")
    return int(text)
