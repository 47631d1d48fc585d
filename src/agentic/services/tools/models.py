"""The framework-neutral contract of a tool: its declared spec, its names, its hash."""

import re
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Discriminator, Field, JsonValue, Tag

from agentic.contract.canonical import canonical, digest
from agentic.contract.normal_form import nfc
from agentic.contract.trust import Trust
from agentic.contract.values import Value

NAME_PATTERN = re.compile(r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$")
"""Grammar of a platform name: ``domain.verb``, at least one dot."""
MAX_NAME_LENGTH = 96
MAX_MODEL_NAME_LENGTH = 64
"""The lowest cap a provider documents."""
MAX_MODEL_TOOLS = 128
"""How many tools of one request a provider takes, by the lowest cap that is documented."""
FRAMEWORK_NAMES = frozenset({"ask_user", "get_user_input", "think", "analyze"})
"""Model-facing names the agent framework answers itself; no tool may take one (N1)."""
STEP_BUDGET_S = 120
MAX_OUTPUT_BYTES = 32 * 1024


class SideEffects(StrEnum):
    """What a tool does to the world."""

    NONE = "none"
    """Acts on the run alone."""
    READ = "read"
    WRITE = "write"
    SEND = "send"
    """Leaves the organization and cannot be taken back."""


class IdempotencyClass(StrEnum):
    """What a second execution of the same call does (ADR 0009)."""

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    """The second execution changes nothing."""
    CONDITIONAL = "conditional"
    """The vendor deduplicates by a key, for ``vendor_key_ttl_s`` seconds."""
    NON_IDEMPOTENT = "non_idempotent"
    """The second execution is a second effect."""


class Risk(StrEnum):
    """How much a wrong call costs."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Watermark(StrEnum):
    """When a claim is marked as "the effect may have left" (ADR 0008)."""

    AT_CLAIM = "at_claim"
    """Together with the claim, before the handler starts."""
    AT_TRANSPORT = "at_transport"
    """By the governed HTTP client, just before the first byte can leave."""


class Mode(StrEnum):
    """How the calls of a tool are executed in a run."""

    INLINE = "inline"
    """Inside the agent loop, when no paused call of the turn comes before it."""
    PAUSED = "paused"
    """At the pause, from a stored proposal."""


class HandlerBinding(Value):
    """Code of this deployment, found by key in the trusted handler table."""

    type: Literal["handler"] = "handler"
    handler_key: str


class RemoteBinding(Value):
    """A tool that a remote server published."""

    type: Literal["remote"] = "remote"
    connection_id: UUID
    """The connection of the vault that the call uses; the server's own id where it needs no credential."""
    remote_name: str
    declaration_hash: str | None = None
    """Over all its server said of it, also what no model reads; ``None`` for a tool whose words are ours, and in old contracts."""


class UnknownBinding(Value):
    """A binding this release does not know, kept as it was written: a tool that is read as unavailable, never a row that cannot be read."""

    model_config = ConfigDict(extra="allow")

    type: str


def _binding_tag(binding: object) -> str:
    tag = binding.get("type") if isinstance(binding, Mapping) else getattr(binding, "type", None)
    return tag if tag in ("handler", "remote") else "unknown"


Binding = Annotated[
    Annotated[HandlerBinding, Tag("handler")]
    | Annotated[RemoteBinding, Tag("remote")]
    | Annotated[UnknownBinding, Tag("unknown")],
    Discriminator(_binding_tag),
]
Source = Literal["builtin", "mcp", "device", "sandbox"]
"""Who brought a tool: the deployment's own code, or something that was discovered or attached while it runs."""


class ToolSpec(Value):
    """What one tool is. Frozen into a run; its hash is what approvals and drift checks bind (ADR 0007).

    Raises:
        pydantic.ValidationError: for a field of the wrong shape; rules across fields are the registry's.
    """

    name: str
    """Platform name; the model never sees it."""
    description: str
    """What the model reads."""
    input_schema: dict[str, JsonValue]
    output_schema: dict[str, JsonValue]
    version: int = Field(default=1, ge=1)
    kind: Literal["internal", "vendor", "mcp"] = "internal"
    role: Literal["capability", "control"] = "capability"
    target: str = "in_process"
    binding: Binding
    side_effects: SideEffects
    idempotency: IdempotencyClass
    risk: Risk
    output_trust: Trust = Trust.INTERNAL
    source: Source = "builtin"
    connection: str | None = None
    """Provider key whose credential the call needs."""
    timeout_s: float = Field(default=30, gt=0)
    retry: Literal["none", "safe"] = "none"
    metered: bool = False
    cost_bound: Decimal | None = Field(default=None, ge=0)
    """Upper bound of one call's price, reserved before it runs."""
    repeatable: bool | None = None
    """``False`` for every write and send: a second identical call in a run is the same effect. ``None`` for a read."""
    approval_preview: bool = False
    policy_facts: tuple[str, ...] = ()
    batch_argument: str | None = None
    max_batch_size: int | None = Field(default=None, ge=1)
    max_results: int | None = Field(default=None, ge=1)
    max_output_bytes: int | None = Field(default=None, ge=2, le=MAX_OUTPUT_BYTES)
    item_kind: str | None = None
    watermark: Watermark = Watermark.AT_CLAIM
    vendor_key_ttl_s: int | None = Field(default=None, ge=1)
    """How long the vendor remembers an idempotency key; required for ``conditional``."""
    may_repeat_because: str | None = None
    """Why a send without vendor key or probe is acceptable; required in that case (ADR 0009)."""
    egress: Literal["none", "open"] = "none"
    """``open``: fetches an address the model chose."""
    parallel_safe: bool = True
    audience: tuple[str, ...] = ()

    @cached_property
    def contract_hash(self) -> str:
        """Digest over every field that policy, the model or the boundary reads."""
        return digest(nfc(self.model_dump(mode="json")))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, but a changed copy never wears the hash of the spec it was made from."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("contract_hash", None)
        return copied

    def contract_text(self) -> str:
        """Canonical JSON of the spec, as it is stored under its hash."""
        return canonical(nfc(self.model_dump(mode="json"))).decode()

    @property
    def journaled(self) -> bool:
        """Whether calls of this tool take a claim: every write and every send."""
        return self.side_effects in (SideEffects.WRITE, SideEffects.SEND)

    @property
    def mode(self) -> Mode:
        """Writes, sends and high-risk reads run from a stored proposal; other reads run in the loop."""
        if self.journaled or self.risk is Risk.HIGH or not self.parallel_safe:
            return Mode.PAUSED
        return Mode.INLINE

    def needs_arguments(self) -> bool:
        """Whether the schema requires at least one argument."""
        return bool(self.input_schema.get("required"))


def model_tool_name(name: str) -> str:
    """The name a provider accepts for a platform name: every refused character becomes ``_`` (N1).

    Lossy on purpose, so the registry refuses two platform names with one model-facing name.
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


class FrozenTool(Value):
    """One line of a run's frozen tool list."""

    spec: ToolSpec
    mode: Mode


JsonObject = dict[str, Any]
