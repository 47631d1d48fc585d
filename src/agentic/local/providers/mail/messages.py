"""The message as a caller sends it and as the provider keeps it."""

import base64
import binascii
import re
from typing import Annotated, Any
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SNIPPET_LENGTH = 100


def _address(value: str) -> str:
    if not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value):
        raise ValueError("is not an email address")
    return value


def _base64(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as problem:
        raise ValueError("is not base64") from problem
    return value


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Participant(_Frozen):
    """A name and an address."""

    email: Annotated[str, AfterValidator(_address)]
    name: str | None = None


class Attachment(_Frozen):
    """A file inside the JSON."""

    filename: str
    content_type: str
    content: Annotated[str, AfterValidator(_base64)]


class Outgoing(_Frozen):
    """The body of a send request. Fields this provider does not act on (scheduling, templates, drafts) are refused, not ignored."""

    to: tuple[Participant, ...] = Field(min_length=1)
    cc: tuple[Participant, ...] = ()
    bcc: tuple[Participant, ...] = ()
    reply_to: tuple[Participant, ...] = ()
    sender: tuple[Participant, ...] = Field(default=(), alias="from", max_length=1)
    subject: str = ""
    body: str = ""
    is_plaintext: bool = False
    reply_to_message_id: str | None = None
    attachments: tuple[Attachment, ...] = ()
    metadata: dict[str, Annotated[str, Field(max_length=500)]] = Field(default={}, max_length=50)
    tracking_options: dict[str, Any] | None = None
    custom_headers: tuple[dict[str, str], ...] = ()
    send_at: None = None
    use_draft: None = None
    template: None = None


class Message(_Frozen):
    """A message of the mailbox: one that left, unless its folder says that it came in."""

    id: str
    thread_id: str
    grant_id: str
    date: int
    """Unix seconds."""
    content: Outgoing
    sender: Participant
    idempotency_key: str | None = None
    """Kept for whoever looks into the store; the HTTP answers do not show it."""
    folder: str = "SENT"
    unread: bool = False

    @property
    def to(self) -> tuple[str, ...]:
        """The recipients' addresses."""
        return tuple(person.email for person in self.content.to)

    @property
    def subject(self) -> str:
        """The subject line."""
        return self.content.subject

    @property
    def body(self) -> str:
        """The text of the message."""
        return self.content.body

    def as_data(self) -> dict[str, Any]:
        """The vendor's JSON of this message."""
        content = self.content
        return {
            "id": self.id,
            "object": "message",
            "grant_id": self.grant_id,
            "thread_id": self.thread_id,
            "subject": content.subject,
            "body": content.body,
            "from": _people((self.sender,)),
            "to": _people(content.to),
            "cc": _people(content.cc),
            "bcc": _people(content.bcc),
            "reply_to": _people(content.reply_to),
            "attachments": [
                {
                    "id": f"{self.id}-{number}",
                    "filename": attachment.filename,
                    "content_type": attachment.content_type,
                    "size": len(base64.b64decode(attachment.content)),
                }
                for number, attachment in enumerate(content.attachments)
            ],
            "date": self.date,
            "folders": [self.folder],
            "snippet": re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", content.body)).strip()[:SNIPPET_LENGTH],
            "starred": False,
            "unread": self.unread,
            "schedule_id": "",
            "reply_to_message_id": content.reply_to_message_id or "",
            "metadata": content.metadata,
            **({"tracking_options": content.tracking_options} if content.tracking_options is not None else {}),
        }

    @classmethod
    def sent(
        cls, content: Outgoing, *, grant_id: str, address: str, date: int, idempotency_key: str | None
    ) -> "Message":
        """The message as it leaves now, from the grant's own address unless the request names another."""
        identity = uuid4().hex[:16]
        return cls(
            id=f"msg-{identity}",
            thread_id=content.reply_to_message_id or f"thr-{identity}",
            grant_id=grant_id,
            date=date,
            content=content,
            sender=content.sender[0] if content.sender else Participant(email=address),
            idempotency_key=idempotency_key,
        )

    @classmethod
    def received(
        cls, content: Outgoing, *, sender: Participant, grant_id: str, date: int, id: str | None = None
    ) -> "Message":
        """A message that somebody else wrote, unread in the inbox."""
        identity = uuid4().hex[:16]
        return cls(
            id=id or f"msg-{identity}",
            thread_id=f"thr-{identity}",
            grant_id=grant_id,
            date=date,
            content=content,
            sender=sender,
            folder="INBOX",
            unread=True,
        )


def _people(people: tuple[Participant, ...]) -> list[dict[str, Any]]:
    return [person.model_dump(exclude_none=True) for person in people]
