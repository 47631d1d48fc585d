"""How a stand-in that runs by itself is told what to do: ``POST /_stand_in`` with a JSON object, and ``GET`` for what it saw.

No vendor has such an address, and a stand-in listens on the loopback address alone. Only JSON that says so is taken, which no page of a
browser can send elsewhere unasked.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from agentic.local.providers.stand_in import Answer, Lost, Ordered, StandIn

PATH = "/_stand_in"
_MAX_BYTES = 1024 * 1024

Asgi = Callable[..., Awaitable[None]]


class Order(BaseModel):
    """What may be ordered; a field that there is not is refused by its name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OrderedAnswer(Order):
    """How the next request is answered: with this, or cut off in the middle."""

    status: int = Field(default=200, ge=100, le=599)
    json_: JsonValue = Field(default=None, alias="json")
    headers: dict[str, str] = Field(default_factory=dict)
    lost: bool = False

    @property
    def ordered(self) -> Ordered:
        """As a stand-in takes it."""
        return Lost() if self.lost else Answer(status=self.status, json=self.json_, headers=self.headers)


class Answers(Order):
    """Orders of a vendor that only answers."""

    then: tuple[OrderedAnswer, ...] = ()


class Knobs(Protocol):
    """What turns the knobs of one stand-in."""

    async def turn(self, order: bytes) -> JsonValue:
        """Do what is ordered, and say what was done.

        Raises:
            ValidationError: there is no such order.
        """
        ...

    def seen(self) -> JsonValue:
        """What the stand-in saw and did."""
        ...


class AnswerKnobs:
    """The knobs of a vendor that only answers."""

    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in

    async def turn(self, order: bytes) -> JsonValue:
        """See ``Knobs``."""
        ordered = Answers.model_validate_json(order).then
        self._stand_in.then(*(each.ordered for each in ordered))
        return {"ordered": len(ordered)}

    def seen(self) -> JsonValue:
        """See ``Knobs``."""
        return {"requests": [{"method": seen.method, "path": seen.path} for seen in self._stand_in.requests]}


def with_knobs(app: Asgi, knobs: Knobs) -> Asgi:
    """The application with ``/_stand_in`` in front of it."""

    async def serve(scope: MutableMapping[str, Any], receive: Asgi, send: Asgi) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await app(scope, receive, send)
            return
        status, answer = await _answer(scope, receive, knobs)
        body = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return serve


async def _answer(scope: MutableMapping[str, Any], receive: Any, knobs: Knobs) -> tuple[int, JsonValue]:
    if scope["method"] == "GET":
        return 200, knobs.seen()
    kind = dict(scope["headers"]).get(b"content-type", b"").partition(b";")[0].strip()
    if scope["method"] != "POST" or kind != b"application/json":
        return 405, {"error": "POST a JSON object as application/json, or GET what was seen"}
    order = b""
    more = True
    while more and len(order) <= _MAX_BYTES:
        message = await receive()
        order += message.get("body", b"")
        more = message.get("more_body", False)
    try:
        return 200, await knobs.turn(order)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        return 400, {"error": [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults]}
