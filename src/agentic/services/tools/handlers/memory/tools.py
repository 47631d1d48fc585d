"""``memory.remember``, ``memory.recall`` and ``memory.forget``. Joined here and nowhere else."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, model_validator

from agentic.contract.errors import NotFound
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.services.tools.handlers.crm.canonical import lines, one_line
from agentic.services.tools.handlers.memory import remembered
from agentic.services.tools.handlers.memory.remembered import Kind, Subject
from agentic.services.tools.scoped_db import ScopedDatabase

MAX_RESULTS = 50
_MISSING = {NotFound: ErrorCode.NOT_FOUND}


def _something(text: str) -> str:
    kept = lines(text)
    if not kept:
        raise ValueError("it says nothing")
    return kept


Key = Annotated[str, Field(max_length=100, pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$")]
Text = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_something)]
Source = Annotated[str, Field(max_length=200), AfterValidator(lambda text: one_line(text) or None)]


class About(BaseModel):
    """Arguments that say whom it is about."""

    about: Literal["person", "company", "user"] = Field(description="'user' is the person you work for.")
    id: UUID | None = Field(default=None, description="Of the person or company in the CRM; left out for the user.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.id is None) != (self.about == "user"):
            raise ValueError("a person or company has an id, and the user has none")
        return self


class ToRemember(About):
    """Arguments of ``memory.remember``."""

    kind: Kind = Field(description="An observation is what you noticed; a preference is what they want.")
    key: Key = Field(
        description="What it is about in a word or two, such as preferred_language. It names what is replaced."
    )
    text: Text
    source: Source | None = Field(default=None, description="Who or what said so.")


class ToRecall(About):
    """Arguments of ``memory.recall``."""

    kind: Kind | None = None
    query: str = Field(default="", max_length=200, description="Words of the text; all must occur.")
    limit: int = Field(default=20, ge=1, le=MAX_RESULTS)


class ToForget(BaseModel):
    """Arguments of ``memory.forget``."""

    memory_id: UUID = Field(description="The id of a memory that a recall found.")


class Remembered(BaseModel):
    """What became of ``memory.remember``; ``changed`` is false when just this was kept already."""

    id: str
    changed: bool


class Memory(BaseModel):
    """One memory. ``trust`` is the label of what it came from."""

    id: str
    kind: Kind
    key: str
    text: str
    source: str | None
    trust: Trust
    updated_at: str


class Forgotten(BaseModel):
    """What became of ``memory.forget``; ``forgotten`` is false for what was forgotten already."""

    id: str
    forgotten: bool


def memory_tools(db: ScopedDatabase) -> list[Tool]:
    """Observations and preferences: ``App(scoped_tools=[memory_tools])``.

    Args:
        db: where they are.
    """

    @internal_tool(
        "memory.remember",
        "Keep an observation or a preference about a person, a company or the user, for later runs. The same key replaces what was "
        "kept under it.",
        side_effects="write",
        idempotency="idempotent",
        risk="low",
        repeatable=False,
        refusals=_MISSING,
    )
    async def remember(ctx: CallContext, args: ToRemember) -> Remembered:
        scoped, subject = db.of(ctx.organization_id), _subject(ctx, args)
        await remembered.require(scoped, subject)
        id, changed = await remembered.remember(
            scoped, subject, args.kind, args.key, text=args.text, source=args.source, trust=ctx.source_trust
        )
        return Remembered(id=id, changed=changed)

    @internal_tool(
        "memory.recall",
        "Read what is kept about a person, a company or the user.",
        output_trust=Trust.INTERNAL,
        max_results=MAX_RESULTS,
        item_kind="memory",
        refusals=_MISSING,
    )
    async def recall(ctx: CallContext, args: ToRecall) -> list[Memory]:
        scoped, subject = db.of(ctx.organization_id), _subject(ctx, args)
        await remembered.require(scoped, subject)
        rows = await remembered.recall(scoped, subject, kind=args.kind, query=args.query, limit=args.limit)
        memories = [Memory.model_validate(row) for row in rows]
        for memory in memories:
            ctx.lower_trust(memory.trust)
        return memories

    @internal_tool(
        "memory.forget",
        "Forget something that was kept.",
        side_effects="write",
        idempotency="idempotent",
        risk="low",
        repeatable=False,
        refusals=_MISSING,
    )
    async def forget(ctx: CallContext, args: ToForget) -> Forgotten:
        forgotten = await remembered.forget(db.of(ctx.organization_id), args.memory_id, user_id=ctx.principal.user_id)
        return Forgotten(id=str(args.memory_id), forgotten=forgotten)

    return [remember, recall, forget]


def _subject(ctx: CallContext, args: About) -> Subject:
    """Whom it is about.

    Raises:
        NotFound: it is the user, and the run acts for nobody.
    """
    ref = args.id if args.about != "user" else ctx.principal.user_id
    if ref is None:
        raise NotFound("this run acts for no person, so there is no user to remember anything about")
    return Subject(kind=args.about, ref=ref)
