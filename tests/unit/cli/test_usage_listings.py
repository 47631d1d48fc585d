"""What people read of usage, prices and limits."""

import io
from typing import Any

from rich.console import Console, RenderableType

from agentic.cli.run_tree import run_tree
from agentic.cli.usage_listings import day_sheet, limit_sheet, price_table, run_sheet

AT = "2026-11-30T05:00:00+00:00"
SPAN: dict[str, Any] = {
    "parent_id": None,
    "attributes": {},
    "started_at": AT,
    "ended_at": AT,
    "state": "closed",
    "status": "ok",
    "code": None,
    "input": None,
    "output": None,
}


def line(**given: Any) -> dict[str, Any]:
    return {
        "at": AT,
        "kind": "tool",
        "provider": "Exa",
        "item": "exa.search",
        "quantity": "1",
        "unit": "request",
        "cost": "0.005",
        "estimated": False,
        "error": None,
        "span_id": "span-1",
        **given,
    }


def total(**given: Any) -> dict[str, Any]:
    return {**line(), "lines": 1, "unpriced": 0, "estimated": 0, **given}


def run(**given: Any) -> dict[str, Any]:
    return {
        "run_id": "run-1",
        "root_run_id": "run-1",
        "ceiling": None,
        "spent": "0.005",
        "held": "0",
        "unpriced": 0,
        "lines": [line()],
        "left_out": 0,
        "totals": [total()],
        "reservations": [],
        **given,
    }


def printed(sheet: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=200, markup=False, highlight=False).print(sheet)
    return out.getvalue()


def test_a_line_says_what_it_cost_and_whether_that_is_a_guess_or_missing() -> None:
    shown = printed(run_sheet(run(lines=[line(), line(estimated=True, error="no_report"), line(cost=None)])))
    for text in ("0.005 USD", "0.005 USD (estimated)", "unpriced", "no_report", "1 request", "span-1"):
        assert text in shown


def test_lines_without_a_price_are_counted_and_the_remedy_is_named_as_the_program_was_called() -> None:
    assert "no price" not in printed(run_sheet(run()))
    assert "1 line has no price" in printed(run_sheet(run(unpriced=1)))
    assert "2 lines have no price" in printed(day_sheet(day(unpriced=2), "agentic --folder x"))
    assert "'agentic --folder x prices set'" in printed(day_sheet(day(unpriced=2), "agentic --folder x"))


def test_what_is_held_and_what_was_left_out_is_told() -> None:
    held = {
        "created_at": AT,
        "owner": "claim",
        "tool": "exa.buy",
        "amount": "0.25",
        "lease_expires_at": None,
        "span_id": None,
    }
    shown = printed(run_sheet(run(reservations=[held], held="0.25", ceiling="1", left_out=7, root_run_id="root")))
    for text in ("exa.buy", "0.25 USD", "1 USD", "and 7 more", "part of", "root"):
        assert text in shown


def day(**given: Any) -> dict[str, Any]:
    return {
        "organization_id": "o",
        "day": "2026-11-30",
        "limit": None,
        "spent": "0",
        "held": "0",
        "left": None,
        "unpriced": 0,
        "totals": [],
        **given,
    }


def test_a_day_without_a_limit_has_nothing_left_to_tell() -> None:
    shown = printed(limit_sheet(day()))
    assert "left" not in shown
    assert "none" in shown
    assert "0.10 USD" in printed(limit_sheet(day(limit="1.00", left="0.10")))
    assert "nothing was used" in printed(day_sheet(day()))


def test_names_of_strangers_cannot_paint_the_terminal() -> None:
    hostile = "\x1b[2J\u202eExa\nspent 0"
    price = {
        "provider": hostile,
        "item": hostile,
        "unit": hostile,
        "unit_price": "1",
        "organization_id": None,
        "valid_from": AT,
    }
    shown = printed(run_sheet(run(lines=[line(provider=hostile, error=hostile)], totals=[total(item=hostile)])))
    shown += printed(price_table([price]))
    assert not set("\x1b\u202e") & set(shown)


def test_a_tree_says_what_each_call_and_request_cost() -> None:
    spans: list[dict[str, Any]] = [
        {"id": name, "name": name, "kind": kind, "cost": cost, "estimated": estimated, "unpriced": unpriced, **SPAN}
        for name, kind, cost, estimated, unpriced in [
            ("gpt", "llm", "0.0021", False, 0),
            ("exa.search", "tool", "0.5", True, 0),
            ("fire.crawl", "tool", None, False, 1),
            ("notes.save", "tool", None, None, None),
        ]
    ]
    run = {
        "id": "r",
        "definition_name": "a",
        "state": "succeeded",
        "error_code": None,
        "partial_reason": None,
        "parked_on": None,
        "answer": None,
        "model_requests": 1,
        "tool_calls": 3,
        "active_ms": 1,
        "created_at": AT,
    }
    rest: dict[str, Any] = {"decisions": [], "approvals": [], "effects": [], "uncertain": []}
    text = printed(run_tree({"run": run, "spans": spans, "cost": {"cost": "0.5021", "unpriced": 1}, **rest}))
    said = {name: row for row in text.splitlines() for name in ("gpt", "exa", "fire", "notes") if name in row}
    assert "0.0021 USD" in said["gpt"]
    assert "0.5 USD (estimated)" in said["exa"]
    assert "unpriced" in said["fire"]
    assert "USD" not in said["notes"]
    assert "cost 0.5021 USD (1 unpriced)" in text
