"""Rules as values: what one says, which calls it may speak about, and which of them count for an organization.

Conditions are text here; `expressions` compiles them, `engine` asks them.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from agentic.contract.values import Value
from agentic.services.tools.models import MAX_NAME_LENGTH, Risk, SideEffects, ToolSpec

MAX_CONDITION_BYTES = 4 * 1024
MAX_REASON_CHARS = 300
_NAME = re.compile(r"[a-z][a-z0-9]*([-_.][a-z0-9]+)*")
_SEGMENTS = r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*"
_PATTERN = re.compile(rf"\*|{_SEGMENTS}\.\*|[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")


class RuleEffect(StrEnum):
    """What a rule does when its condition holds; the stricter one wins."""

    DENY = "deny"
    """The call does not run. A condition that fails denies too."""
    REQUIRE_APPROVAL = "require_approval"
    """A person is asked. A condition that fails asks too."""
    ALLOW = "allow"
    """The call runs unless something stricter speaks. A condition that fails allows nothing."""


class RuleOrigin(StrEnum):
    """Whose rule it is."""

    PACKAGED = "packaged"
    """Comes with the package; a rule of the same name replaces it, a disabled one included."""
    PLATFORM = "platform"
    """Counts for every organization of the database."""
    ORGANIZATION = "organization"


def matches(pattern: str, tool: str) -> bool:
    """Whether a tool pattern covers a tool: ``*``, a platform name, or ``domain.*`` / ``mcp.server.*`` for all that is below."""
    if pattern == "*":
        return True
    return tool.startswith(pattern[:-1]) if pattern.endswith(".*") else tool == pattern


def _rule_name(name: str) -> str:
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        raise ValueError(f"a rule's name is lower-case words joined by - _ or ., at most {MAX_NAME_LENGTH} characters")
    return name


def _tool_pattern(pattern: str) -> str:
    if len(pattern) > MAX_NAME_LENGTH or not _PATTERN.fullmatch(pattern):
        raise ValueError("a tool pattern is a tool's name, 'domain.*', 'mcp.server.*', or '*' for every tool")
    return pattern


def _condition(text: str | None) -> str | None:
    if text is None:
        return None
    if "\0" in text or not text.strip():
        raise ValueError("a condition is an expression; leave it out for a rule that always holds")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError("the condition holds half a surrogate pair, which is no text") from None
    if size > MAX_CONDITION_BYTES:
        raise ValueError(f"a condition has at most {MAX_CONDITION_BYTES} bytes; this one has {size}")
    return text


class RuleDraft(Value):
    """What a person writes down. Saving checks the condition against every tool it may speak about.

    Raises:
        pydantic.ValidationError: for a field of the wrong shape.
    """

    name: Annotated[str, AfterValidator(_rule_name)]
    """Unique in its organization; decisions name it."""
    effect: RuleEffect
    tool: Annotated[str, AfterValidator(_tool_pattern)] = "*"
    side_effects: frozenset[SideEffects] | None = Field(default=None, min_length=1)
    """The rule speaks about these alone; ``None`` for any."""
    risk: frozenset[Risk] | None = Field(default=None, min_length=1)
    egress: Literal["none", "open"] | None = None
    condition: Annotated[str | None, AfterValidator(_condition)] = None
    """CEL; ``None`` always holds."""
    covers_external: bool = False
    """An allow rule that also counts once the run has read external content."""
    four_eyes: bool = False
    """An approval rule under which the requester does not decide."""
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)
    """For the person who is asked, and for the record."""
    enabled: bool = True

    @model_validator(mode="after")
    def _fields_fit_effect(self) -> Self:
        if self.covers_external and self.effect is not RuleEffect.ALLOW:
            raise ValueError("covers_external belongs to an allow rule: the others count anyway")
        if self.four_eyes and self.effect is not RuleEffect.REQUIRE_APPROVAL:
            raise ValueError("four_eyes belongs to a require_approval rule: no other asks a person")
        return self

    def speaks_about(self, spec: ToolSpec) -> bool:
        """Whether calls of this tool reach the condition at all: by name, effect, risk and egress."""
        return (
            matches(self.tool, spec.name)
            and (self.side_effects is None or spec.side_effects in self.side_effects)
            and (self.risk is None or spec.risk in self.risk)
            and (self.egress is None or spec.egress == self.egress)
        )


class Rule(RuleDraft):
    """One stored version of a rule."""

    id: UUID
    """The same over all versions of a name."""
    version: int = Field(ge=1)
    origin: RuleOrigin
    organization_id: UUID | None = None
    created_by: UUID | None = None
    created_at: datetime | None = None

    @property
    def rule_id(self) -> str:
        """How decisions name it: ``rule:name``, with whose rule it is where that is not the organization."""
        return f"rule:{self.name}" if self.origin is RuleOrigin.ORGANIZATION else f"rule:{self.origin}/{self.name}"


def counting(stored: Iterable[Rule], packaged: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules that count: the enabled stored ones, and the packaged ones that no stored rule replaces, in a stable order."""
    rows = list(stored)
    replaced = {rule.name for rule in rows}
    rules = [*rows, *(rule for rule in packaged if rule.name not in replaced)]
    return tuple(sorted((rule for rule in rules if rule.enabled), key=lambda rule: (rule.name, rule.origin)))
