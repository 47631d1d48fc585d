"""What a start asks for, checked before anything is stored, and what two starts with one key must share (ADR 0023). Pure."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from agentic.contract.canonical import digest
from agentic.contract.errors import Conflict, ProgramFault
from agentic.contract.lanes import Lane
from agentic.contract.normal_form import nfc
from agentic.contract.plain import clean_text, plain
from agentic.contract.principal import RunCeilings

MAX_INPUT_BYTES = 256 * 1024
MAX_KEY_CHARS = 200
MAX_SESSION_CHARS = 200
MAX_DEADLINE_S = 365 * 24 * 3600


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A start in the caller's words. See ``Runs.start`` for what each field means."""

    text: str
    request_key: str
    lane: str
    ceilings: RunCeilings | None
    deadline_s: float | None
    session: str | None
    parent: UUID | None

    def digest(self, *, agent: str, user_id: UUID | None) -> str:
        """Digest of everything a second start must repeat. People write in any Unicode form, so text is brought into form C for it.

        What is left at its default is not in it, so that a key of before there was such a choice finds its run.
        """
        chosen = {
            "lane": None if self.lane == Lane.INTERACTIVE else self.lane,
            "ceilings": None if self.ceilings is None else self.ceilings.model_dump(mode="json", exclude_unset=True),
            "deadline_s": None if self.deadline_s is None else str(Decimal(str(self.deadline_s)).normalize()),
            "session": self.session,
            "parent": None if self.parent is None else str(self.parent),
        }
        named = {name: value for name, value in chosen.items() if value is not None}
        asked: list[object] = [agent, self.text, str(user_id), *([named] if named else [])]
        return digest(nfc(plain(asked)))


def check(request: Request) -> None:
    """Refuse what no run can be made of.

    Raises:
        Conflict: the input is too large.
        ProgramFault: anything else.
    """
    if not request.text.strip():
        raise ProgramFault("the input is empty; say what the agent should do")
    if len(request.text.encode("utf-8", "replace")) > MAX_INPUT_BYTES:
        raise Conflict(
            f"the input is larger than {MAX_INPUT_BYTES // 1024} KiB; put large material where a tool can read it"
        )
    _check_id("request key", request.request_key, MAX_KEY_CHARS)
    if request.session is not None:
        _check_id("session", request.session, MAX_SESSION_CHARS)
    if request.session is not None and request.parent is not None:
        raise ProgramFault("a run that another run starts is no turn of a session; leave session or parent out")
    if request.lane not in tuple(Lane):
        raise ProgramFault(f"there is no lane {request.lane!r}; the lanes are {', '.join(Lane)}")
    if request.deadline_s is not None and not 0 < request.deadline_s <= MAX_DEADLINE_S:
        raise ProgramFault(f"deadline_s is {request.deadline_s}; a run lasts more than 0 and at most {MAX_DEADLINE_S}")


def _check_id(what: str, text: str, most: int) -> None:
    if not text or len(text) > most or clean_text(text) != text:
        raise ProgramFault(f"the {what} has 1 to {most} characters, none of them U+0000 or half a character")
