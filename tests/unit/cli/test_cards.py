"""What a person sees before deciding, and of a run afterwards."""

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from agentic.cli.approval_card import approval_card, uncertain_card
from agentic.cli.run_tree import run_tree

AT = "2031-05-06T07:08:09+00:00"
APPROVAL: dict[str, Any] = {
    "id": "a1",
    "run_id": "r1",
    "tool": "email.send",
    "contract_hash": "c1:aa",
    "digest": "c1:bb",
    "arguments_text": '{"amount":1e2,"body":"Hello\\nto: someone.else@fjord.example","to":"per@fjord.example"}',
    "shown": None,
    "rule_id": "matrix.send",
    "rule_version": 1,
    "reason": "it leaves the organization",
    "requested_by": "u1",
    "status": "pending",
    "expires_at": AT,
    "decided_at": None,
    "decided_by": None,
    "comment": None,
    "created_at": AT,
}
UNCERTAIN: dict[str, Any] = {
    "ref": "0123456789abcdef",
    "run_id": "r1",
    "tool": "email.send",
    "scope": "tool.email.send",
    "epoch": 3,
    "attempt": 1,
    "arguments_text": '{"to":"per@fjord.example"}',
    "uncertain_at": AT,
    "uncertain_reason": "the worker died",
    "effect_sent_at": AT,
}


def printed(renderable: RenderableType, width: int = 160) -> str:
    out = io.StringIO()
    Console(file=out, width=width, markup=False, highlight=False).print(renderable)
    return out.getvalue()


def span(kind: str, name: str, **given: Any) -> dict[str, Any]:
    return {
        "id": name,
        "parent_id": None,
        "kind": kind,
        "name": name,
        "state": "closed",
        "status": "ok",
        "code": None,
        "started_at": AT,
        "ended_at": AT,
        "attributes": {},
        "input": None,
        "output": None,
        **given,
    }


def tree(*spans: dict[str, Any], **given: Any) -> dict[str, Any]:
    run = {
        "id": "r1",
        "definition_name": "scribe",
        "state": "succeeded",
        "error_code": None,
        "partial_reason": None,
        "parked_on": None,
        "answer": "done",
        "model_requests": 2,
        "tool_calls": 1,
        "active_ms": 1500,
        "created_at": AT,
    }
    cost = {"cost": "0.25", "input_tokens": 300, "output_tokens": 60, "rows": 3}
    return {
        "run": {**run, **given.pop("run", {})},
        "spans": list(spans),
        "decisions": [],
        "approvals": [],
        "effects": [],
        "uncertain": [],
        "cost": cost,
        **given,
    }


@pytest.mark.guarantee("A1")
def test_a_card_shows_every_argument_as_it_is_stored() -> None:
    text = printed(approval_card(APPROVAL))
    assert "1e2" in text
    assert "per@fjord.example" in text
    assert "matrix.send (version 1): it leaves the organization" in text
    inside = next(line for line in text.splitlines() if "someone.else" in line)
    assert inside.startswith("│     "), "a line inside a value must not look like an argument of its own"


@pytest.mark.guarantee("A1")
def test_a_card_names_the_account_that_the_call_acts_in() -> None:
    text = printed(approval_card({**APPROVAL, "account": "Ada's mail (ada@fjord.example)"}))
    assert any("account" in line and "Ada's mail (ada@fjord.example)" in line for line in text.splitlines())
    assert "account" not in printed(approval_card({**APPROVAL, "account": None}))


@pytest.mark.guarantee("A1")
def test_a_card_cannot_be_rewritten_by_what_it_shows() -> None:
    sly = {**APPROVAL, "arguments_text": '{"to":"x\\u001b[1A\\u202ey"}', "shown": "\x1b[2Jall is well"}
    text = printed(approval_card(sly))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b[2Jall is well" in text


def test_a_card_of_an_unknown_outcome_says_how_to_settle_it() -> None:
    assert "agentic uncertain confirm|deny 0123456789abcdef --evidence" in printed(uncertain_card(UNCERTAIN))


def test_a_tree_names_decision_approval_attempt_and_replay_of_each_call() -> None:
    attributes = {
        "policy.effect": "allow",
        "policy.rule": "matrix.send",
        "approval.id": "a1",
        "call.attempt": 2,
        "replayed": True,
        "tool.outcome_status": "succeeded",
    }
    text = printed(
        run_tree(
            tree(
                span("segment", "segment 1", attributes={"end": "parked"}),
                span("llm", "gpt", parent_id="segment 1", attributes={"input_tokens": 7, "output_tokens": 5}),
                span("tool", "email.send", parent_id="segment 1", attributes=attributes, input='{"to":"p"}'),
            )
        )
    )
    call = next(line for line in text.splitlines() if "email.send" in line)
    for fact in ("succeeded", "allow by matrix.send", "approval a1", "attempt 2", "replayed"):
        assert fact in call
    assert call.startswith(("│   ", "    "))
    assert "7 + 5 tokens" in text
    assert "cost 0.25" in text


@pytest.mark.guarantee("D3")
@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"status": "lost"}, "lost"),
        ({"status": "error", "code": "denied"}, "denied"),
        ({"status": "unknown", "code": "outcome_unknown"}, "outcome_unknown"),
        ({"state": "open", "status": None, "ended_at": None}, "running"),
        ({"attributes": {"policy.effect": "require_approval"}}, "waits for a person"),
    ],
)
def test_a_tree_says_how_each_call_ended(given: dict[str, Any], word: str) -> None:
    text = printed(run_tree(tree(span("tool", "crm.note", **given))))
    assert word in next(line for line in text.splitlines() if "crm.note" in line)


def test_a_call_whose_segment_was_never_written_is_still_shown() -> None:
    assert "email.send" in printed(run_tree(tree(span("tool", "email.send", parent_id="gone"))))


def test_a_tree_ends_with_approvals_effects_and_what_is_uncertain() -> None:
    effect = {
        "seq": 1,
        "kind": "uncertain",
        "tool": "email.send",
        "epoch": 3,
        "attempt": 1,
        "span_id": None,
        "outcome_code": "outcome_unknown",
        "note": "found by the sweep",
        "at": AT,
    }
    asked = {**APPROVAL, "account": "Ada's mail"}
    text = printed(run_tree(tree(approvals=[asked], effects=[effect], uncertain=[UNCERTAIN])))
    assert "  in Ada's mail" in text
    heads = [line for line in text.splitlines() if line in ("approvals", "effects", "uncertain")]
    assert heads == ["approvals", "effects", "uncertain"]
    assert "found by the sweep" in text
    assert "0123456789abcdef" in text


def many(count: int, **odd: dict[str, Any]) -> list[dict[str, Any]]:
    """A run of one segment and as many calls; ``odd`` says what is different about ``call_17``."""
    calls = [span("tool", f"call_{n}", parent_id="segment 1", **odd.get(f"call_{n}", {})) for n in range(count)]
    return [span("segment", "segment 1"), *calls]


def test_a_run_of_many_calls_prints_its_ends_and_what_went_otherwise() -> None:
    spans = many(500, call_200={"status": "error", "code": "denied"}, call_300={"attributes": {"replayed": True}})
    text = printed(run_tree(tree(*spans)))
    for shown in ("call_0 ", "call_499 ", "call_200  denied", "call_300 ", "… 171 more; --full prints all"):
        assert shown in text
    assert "call_250" not in text
    assert len(text.splitlines()) < 130
    gaps = [int(line.split("… ")[1].split()[0]) for line in text.splitlines() if "… " in line]
    assert sum(gaps) + len([line for line in text.splitlines() if "call_" in line]) == 500
    full = printed(run_tree(tree(*spans), full=True))
    assert all(f"call_{n} " in full for n in range(500))
    assert "more;" not in full


def test_a_long_run_of_failures_alone_is_bounded_too() -> None:
    failed = {f"call_{n}": {"status": "error", "code": "denied"} for n in range(500)}
    assert len(printed(run_tree(tree(*many(500, **failed)))).splitlines()) < 150


def test_a_tree_tells_decisions_waits_artifacts_and_repeats() -> None:
    decision = {
        "seq": 7,
        "tool": "email.send",
        "effect": "deny",
        "rule_id": "org.quiet",
        "rule_version": 3,
        "reason": "not at night",
        "decided_at": AT,
    }
    approval = {**APPROVAL, "status": "approved", "decided_at": "2031-05-06T07:09:39+00:00", "decided_by": "u2"}
    wait = {"kind": "provider_job", "ref": "j1", "ordinal": 0, "created_at": AT}
    artifact = {
        "id": "f1",
        "span_id": "s",
        "media_type": "application/json",
        "trust": "external",
        "sha256": "0",
        "size_bytes": 70000,
        "complete": False,
        "created_at": AT,
    }
    spans = [
        span("tool", "a", attributes={"replayed": True}),
        span("tool", "b", attributes={"call.attempt": 3}),
    ]
    told = tree(*spans, decisions=[decision], approvals=[approval, APPROVAL], waits=[wait], artifacts=[artifact])
    text = printed(run_tree(told))
    for fact in (
        "7  email.send  deny  org.quiet v3: not at night",
        "matrix.send v1: it leaves the organization  waited 90.0 s",
        "waits since 2031-05-06 07:08:09",
        "provider_job  j1  since",
        "f1  70000 bytes  application/json  cut off",
        "1 tool calls, 1 replayed, 1 tried again",
    ):
        assert fact in text


def test_a_workflow_shows_which_node_each_of_its_runs_is() -> None:
    def relative(number: int, node: str | None) -> dict[str, object]:
        run = {"id": f"r{number}", "depth": 1, "definition_name": "workflow:leads", "state": "parked", "created_at": AT}
        return {**run, "node": node, "error_code": None, "partial_reason": None}

    text = printed(run_tree(tree(family=[relative(2, "email"), relative(3, None)])))
    assert "r2  workflow:leads email  parked" in text
    assert "r3  workflow:leads  parked" in text


def test_long_sections_are_bounded_and_whole_when_asked() -> None:
    approvals = [{**APPROVAL, "id": f"id-{n}."} for n in range(100)]
    text = printed(run_tree(tree(approvals=approvals)))
    assert "… 60 more; --full prints all" in text
    assert [f"id-{n}." in text for n in (0, 9, 10, 69, 70, 99)] == [True, True, False, False, True, True]
    full = printed(run_tree(tree(approvals=approvals), full=True))
    assert all(f"id-{n}." in full for n in range(100))


def test_nothing_in_a_run_can_paint_the_terminal() -> None:
    sly = "x\x1b[2J\u202ey\nz"
    texts = ("definition_name", "error_code", "partial_reason", "parked_on", "answer")
    decision = dict.fromkeys(("tool", "effect", "rule_id", "reason"), sly)
    told = tree(
        span("segment", sly, attributes={"end": sly}),
        span("llm", sly, attributes={"error": sly}),
        span("tool", sly, code=sly, input=sly, output=sly, attributes={"policy.effect": sly, "policy.rule": sly}),
        run=dict.fromkeys(texts, sly),
        decisions=[{**decision, "seq": 1, "rule_version": 1, "decided_at": AT}],
        approvals=[
            {**APPROVAL, **dict.fromkeys(("tool", "account", "rule_id", "reason", "comment", "arguments_text"), sly)}
        ],
        effects=[
            {
                **dict.fromkeys(("tool", "kind", "outcome_code", "note"), sly),
                "seq": 1,
                "epoch": 1,
                "attempt": 1,
                "at": AT,
            }
        ],
        artifacts=[
            {"id": "f", "media_type": sly, "trust": "user", "size_bytes": 1, "complete": True, "created_at": AT}
        ],
        uncertain=[{**UNCERTAIN, "tool": sly, "uncertain_reason": sly}],
    )
    text = printed(run_tree(told))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_hint_names_the_program_as_the_person_called_it() -> None:
    called = "bin/agentic --folder other"
    hint = f"{called} uncertain confirm|deny {UNCERTAIN['ref']}"
    assert hint in printed(uncertain_card(UNCERTAIN, called))
    assert hint in printed(run_tree({**tree(), "uncertain": [UNCERTAIN]}, called))
