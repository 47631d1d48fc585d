"""Tools that arrive while the deployment runs: which of a batch are let in, and why the others are not. Pure.

What a source claims about its own trust counts for nothing. A faulty entry costs that one tool; two that could be mistaken for one
another cost both, so that nothing depends on their order.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from agentic.contract.trust import Trust
from agentic.services.tools.models import Source, ToolSpec, model_tool_name
from agentic.services.tools.registration import clashes, spec_faults
from agentic.services.tools.schemas import unenforced_formats


class AnyArguments(BaseModel, extra="allow"):
    """Arguments of a tool that has no model in our code; its schema has judged them already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """What became of one entry of a batch."""

    name: str
    reason: str | None = None
    """Why it was rejected, every fault of it; ``None`` when it was accepted."""
    unenforced_formats: Sequence[str] = ()
    """Each ``format`` of its schemas that validation ignores, as ``which pointer: name`` (ADR 0020)."""

    @property
    def accepted(self) -> bool:
        """Whether the tool is registered now."""
        return self.reason is None


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistrationReport:
    """What became of a batch, entry by entry, in its order."""

    source: Source
    entries: Sequence[Admission]

    @property
    def accepted(self) -> tuple[str, ...]:
        """The names that are registered now."""
        return tuple(entry.name for entry in self.entries if entry.accepted)

    @property
    def rejected(self) -> dict[str, str]:
        """The others, each with its reason."""
        return {entry.name: entry.reason for entry in self.entries if entry.reason is not None}


def admit(
    specs: Sequence[ToolSpec],
    source: Source,
    *,
    code: Collection[str],
    present: Collection[str],
    facts: Collection[str] = (),
) -> tuple[list[ToolSpec], RegistrationReport]:
    """Sort a batch into what is let in, under the source it came from, and a report on all of it.

    Args:
        code: names of the deployment's own tools, which nothing that arrives can shadow.
        present: names of tools that arrived before; one of them again replaces it, its model-facing name stays taken for others.
        facts: names of the facts the deployment can find out.
    """
    arrived = [_of_source(spec, source) for spec in specs]
    clashing: dict[str, str] = {}
    for names, fault in clashes(arrived):
        clashing |= dict.fromkeys(names, fault)
    taken = {model_tool_name(name): name for name in (*present, *code)}
    let_in: list[ToolSpec] = []
    entries: list[Admission] = []
    for spec in arrived:
        faults = list(spec_faults(spec, facts=facts))
        if spec.role == "control":
            faults.append("control tools are a part of the runtime; none arrives later")
        if spec.approval_preview:
            faults.append("a preview is code of this deployment; a tool that arrives has none")
        if spec.name in clashing:
            faults.append(clashing[spec.name])
        owner = taken.get(model_tool_name(spec.name))
        if owner is not None and (owner in code or owner != spec.name):
            faults.append(f"its model-facing name {model_tool_name(spec.name)} is that of {owner}")
        formats = () if faults else _formats(spec)
        entries.append(Admission(name=spec.name, reason="; ".join(faults) or None, unenforced_formats=formats))
        if not faults:
            let_in.append(spec)
    return let_in, RegistrationReport(source=source, entries=entries)


def _of_source(spec: ToolSpec, source: Source) -> ToolSpec:
    """The spec as its source allows it to be: what comes from outside is external, whatever it says of itself."""
    return spec.model_copy(update={"source": source, "output_trust": Trust.EXTERNAL})


def _formats(spec: ToolSpec) -> tuple[str, ...]:
    return tuple(
        f"{which} {found}"
        for which, schema in (("input", spec.input_schema), ("output", spec.output_schema))
        for found in unenforced_formats(schema)
    )
