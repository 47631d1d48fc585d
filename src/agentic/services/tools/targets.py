"""Where tools run. This deployment runs those in its own process; the other places are known by name, and their tools read as unavailable.

A place with a network of its own belongs to exactly the tools it was made for, so that no other tool can claim its way out. Pure.
"""

from collections.abc import Collection, Iterator
from typing import Final

from agentic.contract.trust import Trust
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects, ToolSpec, UnknownBinding

IN_PROCESS: Final = "in_process"
EXECUTABLE_TARGETS: Final = frozenset({IN_PROCESS})
"""What this deployment can run."""
KNOWN_TARGETS: Final = EXECUTABLE_TARGETS | {
    "sandbox",
    "device",
    "browser_provider",
    "web_provider",
    "unsubscribe_endpoint",
}
"""Every place a tool may name."""
_UNSUBSCRIBE: Final = "email.unsubscribe"


def executable(spec: ToolSpec, targets: Collection[str] = EXECUTABLE_TARGETS) -> bool:
    """Whether this release knows how to run the tool at all: a binding it knows, at a place that exists here."""
    return not isinstance(spec.binding, UnknownBinding) and spec.target in targets


def target_faults(spec: ToolSpec) -> Iterator[str]:
    """What is wrong with the place a tool names."""
    if spec.target not in KNOWN_TARGETS:
        yield f"nothing is known of the target '{spec.target}'; known are {', '.join(sorted(KNOWN_TARGETS))}"
    if spec.target == "device" and spec.source != "device":
        yield "the target 'device' is for tools that a device brings"
    if spec.target == "web_provider" and not (
        spec.side_effects is SideEffects.READ
        and spec.idempotency is IdempotencyClass.READ_ONLY
        and spec.output_trust is Trust.EXTERNAL
    ):
        yield "the target 'web_provider' is for reads that are read_only and whose output_trust is external"
    if spec.target == "browser_provider" and spec.output_trust is not Trust.EXTERNAL:
        yield "the target 'browser_provider' shows other people's pages: its tools have output_trust external"
    if (spec.target == "unsubscribe_endpoint") != (spec.name == _UNSUBSCRIBE):
        yield f"the target 'unsubscribe_endpoint' is for {_UNSUBSCRIBE} alone, and that tool has no other"
    elif spec.name == _UNSUBSCRIBE and not (
        spec.side_effects is SideEffects.SEND
        and spec.risk is Risk.MEDIUM
        and spec.idempotency is IdempotencyClass.IDEMPOTENT
        and not spec.parallel_safe
    ):
        yield f"{_UNSUBSCRIBE} is a send of medium risk, idempotent and not parallel_safe"
