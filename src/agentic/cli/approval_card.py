"""The two cards a person decides from: a call that waits, and a call whose outcome is unknown. Pure.

What is shown is what runs: every argument, whole, in the stored text (A1). Names and values stand in two columns, so that text
inside a value cannot pass for another argument.
"""

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from agentic.cli.listings import field_table
from agentic.cli.safe_text import safe
from agentic.cli.times import moment


def approval_card(approval: Mapping[str, Any]) -> RenderableType:
    """An approval, as ``api.views.approval_view`` makes it."""
    decided = approval["decided_at"] and f"{moment(approval['decided_at'])} by {approval['decided_by'] or 'time'}"
    facts = field_table(
        {
            "approval": approval["id"],
            "run": approval["run_id"],
            "account": approval.get("account"),
            "rule": f"{approval['rule_id']} (version {approval['rule_version']}): {approval['reason']}",
            "requested by": approval["requested_by"],
            "decided by": "somebody else than who requested it" if approval.get("four_eyes") else None,
            "expires": moment(approval["expires_at"]),
            "decided": decided,
            "comment": approval["comment"],
            "digest": approval["digest"],
        }
    )
    preview = [Text(safe(approval["shown"])), Text()] if approval["shown"] else []
    return Panel(
        Group(*preview, arguments(approval["arguments_text"]), Text(), facts),
        title=Text.assemble((approval["tool"], "bold"), f"  {approval['status']}"),
        title_align="left",
    )


def uncertain_card(call: Mapping[str, Any], agentic: str = "agentic") -> RenderableType:
    """A call whose outcome is unknown, as ``api.views.uncertain_view`` makes it.

    Args:
        call: the call.
        agentic: the command line as the person types it.
    """
    facts = field_table(
        {
            "reference": call["ref"],
            "run": call["run_id"],
            "why": call["uncertain_reason"],
            "since": moment(call["uncertain_at"]),
            "may have left": moment(call["effect_sent_at"]),
            "attempt": f"{call['attempt']} (epoch {call['epoch']})",
        }
    )
    hint = Text(
        f"Look at the receiving side, then: {agentic} uncertain confirm|deny {call['ref']} --evidence '…'", style="dim"
    )
    return Panel(
        Group(arguments(call["arguments_text"] or "{}"), Text(), facts, Text(), hint),
        title=Text.assemble((call["tool"] or call["scope"], "bold"), "  outcome unknown"),
        title_align="left",
    )


def arguments(arguments_text: str) -> RenderableType:
    """The arguments of a call, one a line."""
    try:
        # numbers stay as they are written: 1e2 and 100 are two texts
        read = json.loads(arguments_text, parse_float=_Raw, parse_int=_Raw, parse_constant=_Raw)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        return Text(safe(arguments_text))
    return field_table({name: _value(value) for name, value in read.items()})


class _Raw(str):
    """A number as its text."""

    __slots__ = ()


def _value(value: Any) -> Text:
    if isinstance(value, str) and not isinstance(value, _Raw):
        return Text(safe(value)) if value else Text("(empty)", style="dim")
    return Text(safe(_json(value)))


def _json(value: Any) -> str:
    match value:
        case _Raw():
            return str(value)
        case dict():
            return (
                "{"
                + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_json(item)}" for key, item in value.items())
                + "}"
            )
        case list():
            return "[" + ", ".join(_json(item) for item in value) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
