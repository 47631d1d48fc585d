"""A run as a person reads it: what was asked of the model, what each call was decided and did, what it cost. Pure.

Takes the JSON that ``api.views.tree_view`` makes, so that a stored answer of the API prints like a live run.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from agentic.cli.run_excerpt import kept_spans
from agentic.cli.run_sections import sections
from agentic.cli.run_words import short, styled
from agentic.cli.safe_text import safe, safe_line
from agentic.cli.times import duration, moment

Json = Mapping[str, Any]
Children = Mapping[str | None, Sequence[Json]]


def run_tree(tree: Json, agentic: str = "agentic", *, full: bool = False) -> RenderableType:
    """The tree of a run; then what was decided, approved, waited for, done and kept, and what is uncertain.

    Args:
        tree: the run.
        agentic: the command line as the person types it.
        full: print every line; otherwise of a long run its ends and what went otherwise in between.
    """
    run = tree["run"]
    root = Tree(_headline(run))
    for line in _facts(tree):
        root.add(line)
    spans: Sequence[Json] = tree["spans"]
    known = {span["id"] for span in spans}
    children: dict[str | None, list[Json]] = defaultdict(list)
    for span in spans:
        children[span["parent_id"] if span["parent_id"] in known else None].append(span)
    _grow(root, None, children, known if full else kept_spans(spans))
    return Group(root, *sections(tree, agentic, full=full))


def _headline(run: Json) -> Text:
    return Text.assemble(f"run {run['id']}  ", (safe_line(run["definition_name"]), "bold"), "  ", styled(run["state"]))


def _facts(tree: Json) -> Iterator[Text]:
    run, cost = tree["run"], tree["cost"]
    if run["error_code"]:
        yield Text.assemble("error: ", (safe_line(run["error_code"]), "red"))
    if run["partial_reason"]:
        yield Text.assemble("incomplete: ", (safe_line(run["partial_reason"]), "magenta"))
    if run["parked_on"]:
        yield Text.assemble("waits for: ", (safe_line(run["parked_on"]), "yellow"))
    if run.get("cancel_requested_at"):
        by = f" by {run['cancel_requested_by']}" if run["cancel_requested_by"] else ""
        why = f": {safe_line(run['cancel_reason'])}" if run["cancel_reason"] else ""
        yield Text(f"asked to stop at {moment(run['cancel_requested_at'])}{by}{why}", style="yellow")
    if run.get("session_id"):
        yield Text.assemble("session: ", safe_line(run["session_id"]))
    if run.get("parent_run_id"):
        yield Text.assemble("started by: ", run["parent_run_id"])
    if run["answer"]:
        yield Text.assemble("answer: ", safe(run["answer"]))
    yield Text(
        f"{run['model_requests']} model requests, {run['tool_calls']} tool calls{_repeats(tree['spans'])}, "
        f"{run['active_ms'] / 1000:.1f} s of work, cost {cost.get('cost', '0')} USD{_uncounted(cost)}, "
        f"{cost.get('input_tokens', 0)} + {cost.get('output_tokens', 0)} tokens, started {moment(run['created_at'])}",
        style="dim",
    )


def _uncounted(cost: Json) -> str:
    return f" ({cost['unpriced']} unpriced)" if cost.get("unpriced") else ""


def _repeats(spans: Sequence[Json]) -> str:
    """How many answers came from the journal, and how many attempts were not the first."""
    attributes = [span["attributes"] or {} for span in spans if span["kind"] == "tool"]
    replayed = sum(bool(each.get("replayed")) for each in attributes)
    again = sum(each.get("call.attempt", 1) != 1 for each in attributes)
    return (f", {replayed} replayed" if replayed else "") + (f", {again} tried again" if again else "")


def _grow(branch: Tree, parent: str | None, children: Children, kept: AbstractSet[str]) -> None:
    left_out = 0
    for span in children.get(parent, ()):
        if span["id"] not in kept:
            left_out += _size(span, children)
            continue
        left_out = _gap(branch, left_out)
        twig = branch.add(_span(span))
        if span["kind"] == "tool":
            for arrow, payload in (("→ ", span["input"]), ("← ", span["output"])):
                if payload:
                    twig.add(Text(arrow + short(payload), style="dim"))
        _grow(twig, span["id"], children, kept)
    _gap(branch, left_out)


def _gap(branch: Tree, left_out: int) -> int:
    if left_out:
        branch.add(Text(f"… {left_out} more; --full prints all", style="dim"))
    return 0


def _size(span: Json, children: Children) -> int:
    return 1 + sum(_size(child, children) for child in children.get(span["id"], ()))


def _span(span: Json) -> Text:
    attributes = span["attributes"] or {}
    took = duration(span["started_at"], span["ended_at"])
    match span["kind"]:
        case "tool":
            line = Text.assemble((safe_line(span["name"]), "bold"), "  ", styled(_outcome(span)), *_marks(attributes))
        case "llm":
            tokens = f"  {attributes.get('input_tokens', 0)} + {attributes.get('output_tokens', 0)} tokens"
            line = Text.assemble(f"model {safe_line(span['name'])}  ", styled(_outcome(span)), (tokens, "dim"))
            if attributes.get("error"):
                line.append(f"  {short(str(attributes['error']))}", style="red")
        case _:
            line = Text.assemble(safe_line(span["name"]), "  ", styled(str(attributes.get("end") or _outcome(span))))
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
        effect, rule = str(attributes["policy.effect"]), str(attributes.get("policy.rule", "?"))
        yield Text(f"  {safe_line(effect)} by {safe_line(rule)}", style="cyan")
    if attributes.get("approval.id"):
        yield Text(f"  approval {safe_line(str(attributes['approval.id']))}", style="cyan")
    if attributes.get("call.attempt"):
        attempt = int(attributes["call.attempt"])
        yield Text(f"  attempt {attempt}", style="dim" if attempt == 1 else "yellow")
    if attributes.get("replayed"):
        yield Text("  replayed", style="yellow")
    if attributes.get("tool.truncated"):
        yield Text("  truncated", style="yellow")
