"""Checks of a rule before it is stored: its condition compiles for every tool it may speak about, with that tool's arguments and facts."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from agentic.contract.errors import ProgramFault
from agentic.contract.values import Value
from agentic.services.policy.argument_types import ArgumentTypes, argument_types, sample_arguments
from agentic.services.policy.cel_text import CelText, read_cel
from agentic.services.policy.expressions import (
    ConditionEnvironment,
    ConditionError,
    ConditionFault,
    FactType,
    environment,
    valid_pattern,
)
from agentic.services.policy.facts import FactRegistry
from agentic.services.policy.rules import RuleDraft, RuleEffect
from agentic.services.tools.models import ToolSpec

_MAX_NAMED = 5
_SAMPLES: dict[FactType, Any] = {"bool": True, "number": 1, "string": "text", "json": {}}
_FAILS = {
    RuleEffect.DENY: "the call is then denied",
    RuleEffect.REQUIRE_APPROVAL: "a person is then asked",
    RuleEffect.ALLOW: "the rule then allows nothing",
}


class Finding(Value):
    """One thing about a rule. An error keeps it from being saved; a warning is said."""

    severity: Literal["error", "warning"]
    tool: str | None = None
    """The tool it was found with; ``None`` for the rule as such."""
    message: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.message}" if self.tool else self.message


class RuleRefused(ProgramFault):
    """A rule that cannot be saved; ``findings`` are what is wrong with it."""

    def __init__(self, name: str, findings: Sequence[Finding]) -> None:
        shown = "\n".join(f"  - {finding}" for finding in findings)
        super().__init__(f"the rule {name} cannot be saved:\n{shown}")
        self.findings = tuple(findings)


def lint(draft: RuleDraft, tools: Iterable[ToolSpec], facts: FactRegistry) -> list[Finding]:
    """What is wrong with a rule, and what its author should know; nothing when all is well.

    Args:
        draft: the rule.
        tools: every live tool.
        facts: what the deployment can find out.
    """
    spoken = [spec for spec in tools if draft.speaks_about(spec)]
    findings = [] if spoken else [_warning("it speaks about no tool that is registered here; is the name right?")]
    if draft.condition is None:
        return findings
    text = read_cel(draft.condition)
    findings += _text_findings(text)
    if not spoken:
        findings += _compiles(draft.condition, tuple((fact.name, fact.type) for fact in facts))
    for spec in spoken:
        findings += [
            finding.model_copy(update={"tool": spec.name})
            for finding in _tool_findings(draft, draft.condition, text, spec, facts)
        ]
    return _fewer(findings)


def _text_findings(text: CelText) -> Iterator[Finding]:
    if text.trap is not None:
        yield _error(text.trap)
    for literal in text.patterns:
        broken = valid_pattern(literal)
        if broken is not None:
            yield _error(f"the pattern {literal} is refused: {broken}")


def _tool_findings(
    draft: RuleDraft, condition: str, text: CelText, spec: ToolSpec, facts: FactRegistry
) -> Iterator[Finding]:
    types = facts.types_for(spec)
    missing = sorted(text.facts - {name for name, _ in types})
    if missing:
        yield _error(f"it does not declare {_facts(missing)}; add it to the tool's policy_facts, or narrow the rule")
        return
    arguments = argument_types(spec.input_schema)
    unknown = sorted(text.arguments - text.guarded - arguments.types.keys()) if arguments.closed else []
    if unknown:
        known = ", ".join(sorted(arguments.types)) or "none"
        yield _error(
            f"it has no argument {', '.join(unknown)}; it has {known}. Narrow the rule, or ask has(args.{unknown[0]}) first"
        )
        return
    faults = list(_compiles(condition, types)) or list(_compiles(text.unguarded, types, arguments))
    if faults:
        yield from faults
        return
    for name in sorted((text.arguments & arguments.types.keys()) - text.guarded - arguments.always):
        yield _warning(
            f"the argument {name} may be left out, and the condition then fails: {_FAILS[draft.effect]}. "
            f"Ask has(args.{name}) first if that is not meant"
        )
    if not any(
        kind == "json" and name in text.facts for name, kind in types
    ):  # of any shape, so no sample stands for it
        yield from _dry_run(condition, spec, types)


def _compiles(
    condition: str, types: tuple[tuple[str, FactType], ...], arguments: ArgumentTypes | None = None
) -> Iterator[Finding]:
    checked = environment(types) if arguments is None else ConditionEnvironment(dict(types), arguments.types)
    try:
        checked.compile(condition)
    except ConditionFault as fault:
        yield _error(str(fault))


def _dry_run(condition: str, spec: ToolSpec, types: tuple[tuple[str, FactType], ...]) -> Iterator[Finding]:
    tried = environment(types)
    values = {
        "tool": spec.name,
        "side_effects": str(spec.side_effects),
        "risk": str(spec.risk),
        "args": sample_arguments(spec.input_schema),
        "origin_trust": "external",
        "argument_trust": "external",
        "environment": "live",
        "principal.user_id": "00000000-0000-0000-0000-000000000000",
        "now": datetime(2026, 1, 5, 9, tzinfo=UTC),
        "run.kind": "agent",
        **{f"facts.{name}": _SAMPLES[kind] for name, kind in types},
    }
    answer = tried.compile(condition).answer(tried.bind(values))
    if isinstance(answer, ConditionError):
        yield _warning(f"tried on a made-up call, the condition fails ({answer.message}); such a call fails closed")


def _fewer(findings: Sequence[Finding]) -> list[Finding]:
    """The same words about many tools once, with the number of the others."""
    by_message: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        by_message.setdefault((finding.severity, finding.message), []).append(finding)
    return [
        group[0]
        if len(group) == 1
        else group[0].model_copy(update={"tool": _names([finding.tool or "" for finding in group])})
        for group in by_message.values()
    ]


def _names(tools: Collection[str]) -> str:
    named = sorted(tools)
    more = len(named) - _MAX_NAMED
    return ", ".join(named[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _facts(names: Sequence[str]) -> str:
    return ("the fact " if len(names) == 1 else "the facts ") + ", ".join(names)


def _error(message: str) -> Finding:
    return Finding(severity="error", message=message)


def _warning(message: str) -> Finding:
    return Finding(severity="warning", message=message)
