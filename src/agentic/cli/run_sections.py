"""What stands below the tree of a run: decisions, approvals and waits, effects, artifacts, its tree, what is uncertain. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from agentic.cli.run_excerpt import ends
from agentic.cli.run_words import short, styled
from agentic.cli.safe_text import safe_line
from agentic.cli.times import duration, moment

Json = Mapping[str, Any]


def sections(tree: Json, agentic: str, *, full: bool) -> Iterator[RenderableType]:
    """The sections that have something to say.

    Args:
        tree: the run.
        agentic: the command line as the person types it.
        full: print every line, however many there are.
    """
    for title, items, line in (
        ("decisions", tree["decisions"], _decision),
        ("approvals", tree["approvals"], _approval),
        ("waits for", tree.get("waits", ()), _wait),
        ("effects", tree["effects"], _effect),
        ("artifacts", tree.get("artifacts", ()), _artifact),
        ("runs of its tree", [run for run in tree.get("family", ()) if run["id"] != tree["run"]["id"]], _relative),
        ("uncertain", tree["uncertain"], lambda call: _uncertain(call, agentic)),
    ):
        if items:
            yield _section(title, items, line, full=full)


def _section(title: str, items: Sequence[Json], line: Callable[[Json], RenderableType], *, full: bool) -> Tree:
    branch = Tree(Text(title, style="bold"))
    first, left_out, last = (items, 0, ()) if full else ends(items)
    for item in first:
        branch.add(line(item))
    if left_out:
        branch.add(Text(f"… {left_out} more; --full prints all", style="dim"))
    for item in last:
        branch.add(line(item))
    return branch


def _decision(decision: Json) -> Text:
    line = Text.assemble(
        f"{decision['seq']}  ", (safe_line(decision["tool"]), "bold"), "  ", styled(decision["effect"])
    )
    rule = f"{safe_line(decision['rule_id'])} v{decision['rule_version']}"
    line.append(f"  {rule}: {short(decision['reason'])}", style="cyan")
    return line.append(f"  {moment(decision['decided_at'])}", style="dim")


def _approval(approval: Json) -> RenderableType:
    line = Text.assemble(f"{approval['id']}  ", (safe_line(approval["tool"]), "bold"), "  ", styled(approval["status"]))
    rule = f"{safe_line(approval['rule_id'])} v{approval['rule_version']}"
    line.append(f"  {rule}: {short(approval['reason'])}", style="cyan")
    waited = duration(approval["created_at"], approval["decided_at"])
    line.append(f"  waited {waited}" if waited else f"  waits since {moment(approval['created_at'])}", style="dim")
    if approval.get("account"):
        line.append(f"  in {safe_line(approval['account'])}", style="dim")
    if approval["decided_by"]:
        line.append(f"  by {approval['decided_by']} at {moment(approval['decided_at'])}", style="dim")
    if approval["comment"]:
        line.append(f"  “{safe_line(approval['comment'])}”")
    return Group(line, Text("  → " + short(approval["arguments_text"]), style="dim"))


def _wait(wait: Json) -> Text:
    return Text.assemble((wait["kind"], "yellow"), f"  {wait['ref']}", (f"  since {moment(wait['created_at'])}", "dim"))


def _effect(effect: Json) -> Text:
    line = Text.assemble(f"{effect['seq']}  ", (safe_line(effect["tool"]), "bold"), "  ", styled(effect["kind"]))
    line.append(f"  epoch {effect['epoch']}  attempt {effect['attempt']}", style="dim")
    for extra in (effect["outcome_code"], effect["note"]):
        if extra:
            line.append(f"  {short(extra)}")
    return line.append(f"  {moment(effect['at'])}", style="dim")


def _artifact(artifact: Json) -> Text:
    line = Text(f"{artifact['id']}  {artifact['size_bytes']} bytes  {safe_line(artifact['media_type'])}")
    line.append(
        "  complete" if artifact["complete"] else "  cut off", style="green" if artifact["complete"] else "yellow"
    )
    return line.append(f"  {artifact['trust']}  {moment(artifact['created_at'])}", style="dim")


def _relative(run: Json) -> Text:
    name = run["definition_name"] if run.get("node") is None else f"{run['definition_name']} {run['node']}"
    line = Text.assemble(f"{'  ' * run['depth']}{run['id']}  ", (safe_line(name), "bold"), "  ", styled(run["state"]))
    note = run["error_code"] or run["partial_reason"]
    if note:
        line.append(f"  {short(note)}")
    return line.append(f"  {moment(run['created_at'])}", style="dim")


def _uncertain(call: Json, agentic: str) -> RenderableType:
    name = safe_line(call["tool"] or call["scope"])
    line = Text.assemble(f"{call['ref']}  ", (name, "bold"), "  ", styled("outcome_unknown"))
    line.append(f"  {short(call['uncertain_reason'])}  since {moment(call['uncertain_at'])}", style="dim")
    return Group(line, Text(f"  settle it: {agentic} uncertain confirm|deny {call['ref']} --evidence '…'", style="dim"))
