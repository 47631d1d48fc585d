"""A run as a person reads it: what was asked of the model, what each call was decided and did, what it cost. Pure.

Takes the JSON that ``api.views.tree_view`` makes, so that a stored answer of the API prints like a live run.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from agentic.cli.safe_text import safe, safe_line
from agentic.cli.times import duration, moment

Json = Mapping[str, Any]
_STYLES = {
    "succeeded": "green",
    "completed": "green",
    "confirmed": "green",
    "approved": "green",
    "released": "yellow",
    "held": "yellow",
    "queued": "yellow",
    "waits for a person": "yellow",
    "pending": "yellow",
    "parked": "yellow",
    "running": "yellow",
    "open": "yellow",
    "outcome_unknown": "magenta",
    "uncertain": "magenta",
    "lost": "magenta",
}
_MAX_PAYLOAD_CHARS = 400
"""Of one payload line; ``--json`` has it whole."""


def run_tree(tree: Json, agentic: str = "agentic") -> RenderableType:
    """The tree of a run, its approvals, its effects, and what is uncertain.

    Args:
        tree: the run.
        agentic: the command line as the person types it.
    """
    run = tree["run"]
    root = Tree(_headline(run))
    for line in _facts(run, tree["cost"]):
        root.add(line)
    children: dict[str | None, list[Json]] = defaultdict(list)
    known = {span["id"] for span in tree["spans"]}
    for span in tree["spans"]:
        children[span["parent_id"] if span["parent_id"] in known else None].append(span)
    _grow(root, None, children)
    return Group(
        root,
        *_section("approvals", [_approval(item) for item in tree["approvals"]]),
        *_section("effects", [_effect(item) for item in tree["effects"]]),
        *_section("uncertain", [_uncertain(item, agentic) for item in tree["uncertain"]]),
    )


def _headline(run: Json) -> Text:
    return Text.assemble(f"run {run['id']}  ", (safe_line(run["definition_name"]), "bold"), "  ", _styled(run["state"]))


def _facts(run: Json, cost: Json) -> Iterator[Text]:
    if run["error_code"]:
        yield Text.assemble("error: ", (run["error_code"], "red"))
    if run["partial_reason"]:
        yield Text.assemble("incomplete: ", (safe_line(run["partial_reason"]), "magenta"))
    if run["parked_on"]:
        yield Text.assemble("waits for: ", (run["parked_on"], "yellow"))
    if run["answer"]:
        yield Text.assemble("answer: ", safe(run["answer"]))
    yield Text(
        f"{run['model_requests']} model requests, {run['tool_calls']} tool calls, "
        f"{run['active_ms'] / 1000:.1f} s of work, cost {cost.get('cost', '0')} USD{_uncounted(cost)}, "
        f"{cost.get('input_tokens', 0)} + {cost.get('output_tokens', 0)} tokens, started {moment(run['created_at'])}",
        style="dim",
    )


def _uncounted(cost: Json) -> str:
    return f" without {cost['unpriced']} unpriced" if cost.get("unpriced") else ""


def _grow(branch: Tree, parent: str | None, children: Mapping[str | None, Sequence[Json]]) -> None:
    for span in children.get(parent, ()):
        twig = branch.add(_span(span))
        if span["kind"] == "tool":
            for arrow, payload in (("→ ", span["input"]), ("← ", span["output"])):
                if payload:
                    twig.add(Text(arrow + _short(payload), style="dim"))
        _grow(twig, span["id"], children)


def _span(span: Json) -> Text:
    attributes = span["attributes"] or {}
    took = duration(span["started_at"], span["ended_at"])
    match span["kind"]:
        case "tool":
            line = Text.assemble((safe_line(span["name"]), "bold"), "  ", _styled(_outcome(span)), *_marks(attributes))
        case "llm":
            tokens = f"  {attributes.get('input_tokens', 0)} + {attributes.get('output_tokens', 0)} tokens"
            line = Text.assemble(f"model {safe_line(span['name'])}  ", _styled(_outcome(span)), (tokens, "dim"))
            if attributes.get("error"):
                line.append(f"  {_short(str(attributes['error']))}", style="red")
        case _:
            line = Text.assemble(safe_line(span["name"]), "  ", _styled(str(attributes.get("end") or _outcome(span))))
    for text, style in _cost(span):
        line.append(f"  {text}", style=style)
    return line.append(f"  {took}", style="dim") if took else line


def _cost(span: Json) -> Iterator[tuple[str, str]]:
    """What the call or request cost, when it was metered."""
    if span.get("cost") is not None:
        yield f"{span['cost']} USD{' (estimated)' if span.get('estimated') else ''}", "cyan"
    if span.get("unpriced"):
        yield "unpriced", "yellow"


def _outcome(span: Json) -> str:
    attributes = span["attributes"] or {}
    if span["state"] == "open":
        return "running"
    if span["status"] == "lost":
        return "lost"
    if span["code"]:
        return str(span["code"])
    if "tool.outcome_status" in attributes:
        return str(attributes["tool.outcome_status"])
    if attributes.get("policy.effect") == "require_approval":
        return "waits for a person"
    return {"ok": "succeeded", "error": "failed", "unknown": "outcome_unknown"}.get(
        str(span["status"]), str(span["status"])
    )


def _marks(attributes: Json) -> Iterator[Text]:
    """Why it was allowed to run, and the how-manieth time this was."""
    if attributes.get("policy.effect"):
        yield Text(
            f"  {attributes['policy.effect']} by {safe_line(str(attributes.get('policy.rule', '?')))}", style="cyan"
        )
    if attributes.get("approval.id"):
        yield Text(f"  approval {attributes['approval.id']}", style="cyan")
    if attributes.get("call.attempt"):
        attempt = int(attributes["call.attempt"])
        yield Text(f"  attempt {attempt}", style="dim" if attempt == 1 else "yellow")
    if attributes.get("replayed"):
        yield Text("  replayed", style="yellow")
    if attributes.get("tool.truncated"):
        yield Text("  truncated", style="yellow")


def _section(title: str, lines: Sequence[RenderableType]) -> Iterator[RenderableType]:
    if lines:
        branch = Tree(Text(title, style="bold"))
        for line in lines:
            branch.add(line)
        yield branch


def _approval(approval: Json) -> RenderableType:
    line = Text.assemble(f"{approval['id']}  ", (approval["tool"], "bold"), "  ", _styled(approval["status"]))
    line.append(f"  {approval['rule_id']}: {safe_line(approval['reason'])}", style="cyan")
    if approval["decided_by"]:
        line.append(f"  by {approval['decided_by']} at {moment(approval['decided_at'])}", style="dim")
    if approval["comment"]:
        line.append(f"  “{safe_line(approval['comment'])}”")
    return Group(line, Text("  → " + safe_line(approval["arguments_text"]), style="dim"))


def _effect(effect: Json) -> Text:
    line = Text.assemble(f"{effect['seq']}  ", (effect["tool"], "bold"), "  ", _styled(effect["kind"]))
    line.append(f"  epoch {effect['epoch']}  attempt {effect['attempt']}", style="dim")
    for extra in (effect["outcome_code"], effect["note"]):
        if extra:
            line.append(f"  {safe_line(extra)}")
    return line.append(f"  {moment(effect['at'])}", style="dim")


def _uncertain(call: Json, agentic: str) -> RenderableType:
    line = Text.assemble(f"{call['ref']}  ", (call["tool"] or call["scope"], "bold"), "  ", _styled("outcome_unknown"))
    line.append(f"  {safe_line(call['uncertain_reason'])}  since {moment(call['uncertain_at'])}", style="dim")
    return Group(line, Text(f"  settle it: {agentic} uncertain confirm|deny {call['ref']} --evidence '…'", style="dim"))


def _styled(word: str) -> Text:
    return Text(word, style=_STYLES.get(word, "red"))


def _short(text: str) -> str:
    line = safe_line(text)
    return line if len(line) <= _MAX_PAYLOAD_CHARS else line[: _MAX_PAYLOAD_CHARS - 1] + "…"
