"""What the provider did: messages that left, requests it saw, keys it remembers, failures it was told to make.

Holds the rules of a send without HTTP; ``app`` translates. One event loop only: between two awaits nothing else runs, which is
what makes asking for a key and taking it one step.
"""

import dataclasses
import inspect
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from pydantic import ValidationError

from agentic.contract.clock import Clock, SystemClock
from agentic.local.providers.mail import journal
from agentic.local.providers.mail.faults import Fault, Hold, Lost
from agentic.local.providers.mail.idempotency import Answer, Keys, Verdict
from agentic.local.providers.mail.messages import Message, Outgoing, Participant

Accepted = Callable[[Message], Awaitable[None] | None]
GrantStatus = Literal["valid", "invalid"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One request, kept from its arrival; ``status`` is ``None`` until it was answered."""

    number: int
    method: str
    path: str
    key: str | None
    at: datetime
    body: bytes = b""
    status: int | None = None
    replayed: bool = False
    """Answered from the key; nothing was done."""


class MailStore:
    """The provider's memory.

    Args:
        path: a JSON-lines file to keep messages and keys in; ``None`` keeps them in memory alone.
        clock: what dates messages and ends the hour of a key.
        on_accepted: called with each message right after it was stored and before its answer is sent; may be a coroutine function.

    Raises:
        StoreUnreadable: the file is not a mail store's.
    """

    def __init__(
        self, *, path: Path | None = None, clock: Clock | None = None, on_accepted: Accepted | None = None
    ) -> None:
        self.messages: list[Message] = []
        """What was really sent, oldest first."""
        self.inbox: list[Message] = []
        """What others wrote, oldest first; in no file."""
        self.attempts: list[Attempt] = []
        """Every request, oldest first."""
        self.grant_status: GrantStatus = "valid"
        self.on_accepted = on_accepted
        self._path = path
        self._clock = clock or SystemClock()
        self._keys = Keys()
        self._ordered: deque[Fault | Hold | Lost] = deque()
        self._ordered_reads: deque[Fault | Lost] = deque()
        self._holds: list[Hold] = []
        if path is not None:
            for line in journal.read(path):
                if line.message is not None:
                    self.messages.append(line.message)
                if line.key is not None and line.remembered is not None:
                    self._keys.restore(line.grant_id, line.key, line.remembered)

    def fail_next(
        self,
        *,
        status: int,
        type: str = "",
        retry_after: int | None = None,
        after_accept: bool = False,
        remembered: bool = True,
        times: int = 1,
    ) -> None:
        """Answer the next ``times`` sends that really run (replays do not count) with this error. See ``Fault``."""
        fault = Fault(
            status=status, type=type, retry_after=retry_after, after_accept=after_accept, remembered=remembered
        )
        self._ordered.extend([fault] * times)

    def lose_next(self) -> None:
        """The next send stores its message, and the line breaks in the middle of its answer."""
        self._ordered.append(Lost())

    def fail_next_read(self, *, status: int, type: str = "", retry_after: int | None = None, times: int = 1) -> None:
        """Answer the next ``times`` lists and reads of messages with this error."""
        self._ordered_reads.extend([Fault(status=status, type=type, retry_after=retry_after)] * times)

    def lose_next_read(self) -> None:
        """The line breaks in the middle of the answer to the next list or read of messages."""
        self._ordered_reads.append(Lost())

    def receive(
        self, content: Outgoing, *, sender: Participant, grant_id: str, date: int | None = None, id: str | None = None
    ) -> Message:
        """Put a message of somebody else into the inbox.

        Args:
            date: Unix seconds; ``None`` for now.
            id: its id; ``None`` makes one up.
        """
        moment = int(self._clock.now().timestamp()) if date is None else date
        message = Message.received(content, sender=sender, grant_id=grant_id, date=moment, id=id)
        self.inbox.append(message)
        return message

    @property
    def mailbox(self) -> list[Message]:
        """Everything that a list finds, oldest first."""
        return sorted((*self.messages, *self.inbox), key=lambda message: message.date)

    def read(self, served: Answer) -> Answer:
        """The answer to a list or a read of messages: ``served``, or what was ordered in its place."""
        match self._ordered_reads.popleft() if self._ordered_reads else None:
            case Fault() as fault:
                return _faulty(fault)
            case Lost():
                return dataclasses.replace(served, cut=True)
            case None:
                return served

    def hang_after_accept(self) -> Hold:
        """The next send stores its message and then stays silent until the returned hold is released or the server stops."""
        return self._hold(after_accept=True)

    def hang_before_accept(self) -> Hold:
        """The next send stands still before anything happened, so that its key counts as running."""
        return self._hold(after_accept=False)

    def release_all(self) -> None:
        """Let every held request go on."""
        for hold in self._holds:
            hold.release.set()

    def arrived(self, *, method: str, path: str, key: str | None, body: bytes = b"") -> int:
        """Write down a request; the number is for ``answered``."""
        number = len(self.attempts)
        attempt = Attempt(number=number, method=method, path=path, key=key, at=self._clock.now(), body=body)
        self.attempts.append(attempt)
        return number

    def answered(self, number: int, *, status: int, replayed: bool = False) -> None:
        """Complete what ``arrived`` wrote down."""
        self.attempts[number] = dataclasses.replace(self.attempts[number], status=status, replayed=replayed)

    async def send(self, *, grant_id: str, address: str, key: str | None, payload: bytes) -> tuple[Answer, bool]:
        """One send request.

        Args:
            grant_id: the mailbox it is sent from.
            address: that mailbox's own address.
            key: the request's idempotency key.
            payload: the request's body as it came.

        Returns:
            The answer, and whether it is a replay.
        """
        if key:
            known = self._keys.begin(grant_id, key, payload, self._clock.now())
            if isinstance(known, Answer):
                return known, True
            if known is not None:
                return error(_STATUS[known], known, _TEXT[known]), False
        try:
            answer = await self._run(grant_id, address, key, payload)
        except BaseException:
            if key:
                self._keys.abandon(grant_id, key)
            raise
        return answer, False

    async def _run(self, grant_id: str, address: str, key: str | None, payload: bytes) -> Answer:
        ordered = self._ordered.popleft() if self._ordered else None
        if isinstance(ordered, Hold) and not ordered.after_accept:
            await ordered.stand()
        fault = ordered if isinstance(ordered, Fault) else None
        message: Message | None = None
        if fault is not None and not fault.after_accept:
            answer = _faulty(fault)
        else:
            try:
                content = Outgoing.model_validate_json(payload)
            except ValidationError as problem:
                answer = error(400, "api.invalid_request_payload", _first(problem))
            else:
                message = Message.sent(
                    content,
                    grant_id=grant_id,
                    address=address,
                    date=int(self._clock.now().timestamp()),
                    idempotency_key=key,
                )
                answer = _faulty(fault) if fault is not None else success(message.as_data(), grant_id=grant_id)
        self._keep(grant_id, key, message, answer, remembered=fault is None or fault.remembered)
        if message is not None and self.on_accepted is not None:
            waiting = self.on_accepted(message)
            if inspect.isawaitable(waiting):
                await waiting
        if isinstance(ordered, Hold) and ordered.after_accept:
            await ordered.stand()
        return dataclasses.replace(answer, cut=True) if isinstance(ordered, Lost) else answer

    def _keep(
        self, grant_id: str, key: str | None, message: Message | None, answer: Answer, *, remembered: bool
    ) -> None:
        """Message and key become true together; there is no await between them."""
        entry = None
        if key and remembered:
            entry = self._keys.finish(grant_id, key, answer)
        elif key:
            self._keys.forget(grant_id, key)
        if message is not None:
            self.messages.append(message)
        if self._path is not None and (message is not None or entry is not None):
            journal.write(self._path, journal.Line(grant_id=grant_id, message=message, key=key, remembered=entry))

    def _hold(self, *, after_accept: bool) -> Hold:
        hold = Hold(after_accept=after_accept)
        self._ordered.append(hold)
        self._holds.append(hold)
        return hold


_STATUS = {Verdict.INVALID: 400, Verdict.MISMATCH: 409, Verdict.CONCURRENT: 409}
_TEXT = {
    Verdict.INVALID: "The idempotency key is longer than 256 characters",
    Verdict.MISMATCH: "The idempotency key was used with another request payload",
    Verdict.CONCURRENT: "A request with this idempotency key is still being processed",
}


def success(data: Any, **beside: Any) -> Answer:
    """The vendor's envelope around ``data``."""
    return Answer(status=200, body=_json({"request_id": _request_id(), **beside, "data": data}))


def error(status: int, type: str, message: str, *, retry_after: int | None = None) -> Answer:
    """The vendor's error envelope."""
    body = _json({"request_id": _request_id(), "error": {"type": type, "message": message}})
    return Answer(status=status, body=body, retry_after=retry_after)


def _faulty(fault: Fault) -> Answer:
    text = f"The provider answered {fault.status}"
    return error(fault.status, fault.error_type, text, retry_after=fault.retry_after)


def _first(problem: ValidationError) -> str:
    detail = problem.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in detail["loc"])
    return f"{where}: {detail['msg']}" if where else detail["msg"]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _request_id() -> str:
    return f"rq-{uuid4().hex[:12]}"
