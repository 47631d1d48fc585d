"""What a check of records found, for people. Pure."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from agentic.cli.safe_text import safe_line
from agentic.services.audit.models import Finding, RunAudit


def findings_text(audits: Sequence[RunAudit]) -> RenderableType:
    """The findings of runs that are not whole."""
    return Group(*map(_run, audits))


def counted(number: int, noun: str) -> str:
    """So many of them, in English."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _run(audit: RunAudit) -> Tree:
    branch = Tree(Text.assemble(f"run {audit.run_id}  ", ("not whole", "red")))
    for finding in audit.findings:
        branch.add(_finding(finding))
    return branch


def _finding(finding: Finding) -> Text:
    line = Text.assemble((finding.kind, "red"), f"  {finding.table}")
    if finding.first is not None:
        line.append(
            f"  line {finding.first}" if finding.first == finding.last else f"  lines {finding.first} to {finding.last}"
        )
    if finding.tool:
        line.append(f"  {safe_line(finding.tool)}", style="bold")
    if finding.ref:
        line.append(f"  {finding.ref}")
    return line.append(f"  {safe_line(finding.detail)}", style="dim")
