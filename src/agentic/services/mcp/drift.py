"""What changed between two catalogs of one server, for a person who decides whether the change may count. Pure.

Every line of a difference that is not a heading is the server's text: data, never instructions.
"""

import difflib
import json
from typing import Final

from agentic.contract.values import Value
from agentic.services.mcp.catalog import Catalog, RemoteTool

MAX_LINES: Final = 200


class ToolChange(Value):
    """One tool that is declared in another way than it was."""

    remote_name: str
    fields: tuple[str, ...]
    """Which parts differ; empty when only what nobody is shown does, such as the tail of a long description."""
    lines: tuple[str, ...]
    """A unified difference, at most 200 lines; the last one says so when there were more."""


class Drift(Value):
    """What became of a server's tools. A tool in none of the three is as it was."""

    old_hash: str
    new_hash: str
    added: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    """Not offered any more, or not in a way that can be carried."""
    changed: tuple[ToolChange, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether every tool that could be called can be called as before, and there is no other."""
        return not (self.added or self.withdrawn or self.changed)


def drift(old: Catalog, new: Catalog) -> Drift:
    """Compare what was approved with what is offered."""
    before = {tool.remote_name: tool for tool in old.tools}
    after = {tool.remote_name: tool for tool in new.tools}
    changed = [
        _change(before[name], after[name])
        for name in sorted(before.keys() & after.keys())
        if before[name].declaration_hash != after[name].declaration_hash
    ]
    return Drift(
        old_hash=old.catalog_hash,
        new_hash=new.catalog_hash,
        added=tuple(sorted(after.keys() - before.keys())),
        withdrawn=tuple(sorted(before.keys() - after.keys())),
        changed=tuple(changed),
    )


def _change(old: RemoteTool, new: RemoteTool) -> ToolChange:
    shown = ("description", "input_schema", "output_schema", "annotations", "application_only")
    fields = tuple(field for field in shown if getattr(old, field) != getattr(new, field))
    lines: list[str] = []
    for field in fields:
        lines += difflib.unified_diff(
            _lines(getattr(old, field)),
            _lines(getattr(new, field)),
            fromfile=f"{field}, approved",
            tofile=f"{field}, offered now",
            lineterm="",
            n=1,
        )
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"… {len(lines) - MAX_LINES + 1} more lines"]
    return ToolChange(remote_name=old.remote_name, fields=fields, lines=tuple(lines))


def _lines(value: object) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    return text.splitlines()
