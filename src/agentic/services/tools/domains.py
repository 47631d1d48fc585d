"""Who owns the first word of a tool's name, so that nobody's tool can pass for somebody else's. Pure.

The deployment's code owns every domain but those of the two sources that bring tools while it runs; it may share ``sandbox``. Five
domains hold tools that act on the run itself, and such tools stand nowhere else.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from agentic.services.tools.models import Source, ToolSpec

REMOTE_DOMAINS: Final[Mapping[str, Source]] = {"mcp": "mcp", "device": "device"}
"""Domains whose tools arrive at run time, and belong to one organization. Code may not use them."""
CONTROL_DOMAINS: Final = frozenset({"conversation", "context", "delegate", "tool"})
"""Domains of control tools alone."""
MIXED_DOMAINS: Final = frozenset({"skill"})
"""Domains of control tools and of capabilities."""
CODE_DOMAINS: Final = frozenset(
    (
        *("system", "math", "workspace", "sandbox", "artifact", "demo", "skill", "memory", "schedule", "knowledge"),
        *("web", "browser", "email", "people", "image", "video", *CONTROL_DOMAINS),
    )
)
"""Domains that are set aside for tools written as code; so is every domain a deployment makes up."""


def domain_of(name: str) -> str:
    """The first word of a platform name."""
    return name.split(".", 1)[0]


def belongs_to_organization(name: str) -> bool:
    """Whether a tool of this name arrived at run time for one organization, and is no business of any other (T1)."""
    return domain_of(name) in REMOTE_DOMAINS


def domain_faults(spec: ToolSpec) -> Iterator[str]:
    """What is wrong with the domain a tool stands in."""
    domain = domain_of(spec.name)
    if spec.source == "builtin":
        if domain in REMOTE_DOMAINS:
            yield f"the domain '{domain}' is reserved for tools of the source {REMOTE_DOMAINS[domain]}"
    elif domain != spec.source:
        owner = "the deployment's code" if domain in CODE_DOMAINS else "somebody else"
        yield f"a tool of the source {spec.source} is named '{spec.source}.…'; the domain '{domain}' belongs to {owner}"
    if spec.source == "mcp" and spec.name.count(".") < 2:
        yield "a tool of an MCP server is named 'mcp.<server>.<name>'"
    if spec.role == "control":
        if domain not in CONTROL_DOMAINS | MIXED_DOMAINS:
            yield f"a control tool stands in one of {', '.join(sorted(CONTROL_DOMAINS | MIXED_DOMAINS))}"
    elif domain in CONTROL_DOMAINS:
        yield f"the domain '{domain}' is reserved for control tools"
