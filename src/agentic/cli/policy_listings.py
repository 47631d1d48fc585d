"""Rules, findings and explanations as people read them. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentic.cli.listings import field_table
from agentic.cli.safe_text import safe_line


def rule_table(rules: Sequence[dict[str, Any]]) -> Table:
    """Rules, by name; the condition takes what room is left."""
    table = Table(box=None, pad_edge=False, expand=True)
    for name in ("rule", "version", "effect", "about"):
        table.add_column(name, overflow="fold")
    table.add_column("when", overflow="fold", ratio=1)
    for rule in rules:
        cells = (rule["rule_id"], str(rule["version"]), _effect(rule), _about(rule), rule["condition"] or "always")
        table.add_row(*(Text(safe_line(cell)) for cell in cells))
    return table


def findings_text(findings: Sequence[dict[str, Any]]) -> RenderableType:
    """What a check found, a line each."""
    if not findings:
        return Text("nothing to say against these rules")
    lines = []
    for finding in findings:
        where = f"{finding['rule']}: " + (f"{finding['tool']}: " if finding["tool"] else "")
        lines.append(Text(safe_line(f"{finding['severity']}: {where}{finding['message']}")))
    return Group(*lines)


def explanation_view(told: dict[str, Any]) -> RenderableType:
    """A decision, what it rests on, and what every rule said."""
    fields = {
        "decision": told["effect"] + (", by a second person" if told["four_eyes"] else ""),
        "by": f"{told['rule_id']}, version {told['rule_version']}",
        "because": told["reason"],
        "floor": told["floor"] or "none applies",
        "facts": ", ".join(f"{name} = {json.dumps(value)}" for name, value in sorted(told["facts"].items()))
        or "none needed",
    }
    rules = Table(box=None, pad_edge=False, expand=True)
    for name in ("rule", "version", "effect", "says"):
        rules.add_column(name, overflow="fold")
    rules.add_column("because", overflow="fold", ratio=1)
    for rule in told["rules"]:
        says = rule["said"] + (", so it counts" if rule["said"] == "failed" and rule["counts"] else "")
        cells = (
            rule["rule_id"],
            str(rule["version"]),
            rule["effect"],
            says,
            rule["why"] or rule["condition"] or "it has no condition",
        )
        rules.add_row(*(Text(safe_line(cell)) for cell in cells))
    return Group(field_table(fields), Text(), rules)


def _effect(rule: dict[str, Any]) -> str:
    extra = {"covers_external": "covers external", "four_eyes": "four eyes"}
    words = [rule["effect"], *(word for field, word in extra.items() if rule[field])]
    return ", ".join(words) if rule["enabled"] else ", ".join([*words, "off"])


def _about(rule: dict[str, Any]) -> str:
    limits = [" or ".join(sorted(rule[field])) for field in ("side_effects", "risk") if rule[field]]
    return ", ".join([rule["tool"], *limits, *(["open egress"] if rule["egress"] == "open" else [])])
