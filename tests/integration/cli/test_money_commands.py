"""Money on the command line: prices, the limit of a day, and what was used."""

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own


@pytest.fixture
def admin(seed: "Seed", shell: "Shell") -> list[str]:
    user = str(uuid4())
    assert shell("members", "put", user, "admin").code == 0
    return ["--as", user]


@pytest.mark.guarantee("M3")
def test_a_price_is_kept_to_the_last_digit_and_the_latest_one_counts(shell: "Shell", admin: list[str]) -> None:
    assert "there are no prices" in shell("prices", "list").err
    assert shell("prices", "set", "OpenAI", "*", "input_token", "9", *admin).code == 0
    set_ = shell("prices", "set", "OpenAI", "*", "input_token", "2.5e-7", *admin, "--json")
    assert (set_.code, set_.err, set_.value["unit_price"]) == (0, "", "0.00000025")
    assert shell("prices", "set", "OpenAI", "*", "input_token", "1", "--all-organizations").code == 0
    listed = shell("prices", "list", "--json").value
    assert sorted((price["organization_id"] is None, price["unit_price"]) for price in listed) == [
        (False, "0.00000025"),
        (True, "1"),
    ]
    shown = shell("prices", "list").out
    assert "0.00000025 USD" in shown
    assert "everybody" in shown


@pytest.mark.parametrize("amount", ["nan", "inf", "-1", "free", "1e40", ""])
def test_what_is_no_amount_is_refused_in_a_sentence(shell: "Shell", amount: str) -> None:
    for arguments in (["prices", "set", "--", "a", "b", "c", amount], ["limits", "set", f"--day={amount}"]):
        ended = shell(*arguments)
        assert (ended.code, ended.out) == (2, ""), arguments
        assert "is no amount" in ended.err


def test_prices_and_limits_are_set_by_admins_alone(seed: "Seed", shell: "Shell") -> None:
    for arguments in (
        ["prices", "set", "a", "b", "c", "1"],
        ["limits", "set", "--day", "1"],
        ["limits", "set", "--day", "none"],
    ):
        ended = shell(*arguments, "--as", str(seed.operator))
        assert (ended.code, ended.out) == (1, "")
        assert "takes the role admin" in ended.err
    assert shell("prices", "list", "--json").value == []
    assert shell("limits", "show", "--json").value["limit"] is None


def test_a_unit_that_no_model_is_counted_in_is_said(shell: "Shell", admin: list[str]) -> None:
    assert "note: models are counted in input_token" in shell("prices", "set", "x", "y", "token", "1", *admin).err


@pytest.mark.guarantee("M2")
def test_the_limit_of_a_day_is_set_shown_and_lifted(shell: "Shell", admin: list[str]) -> None:
    assert "may spend 2.50 USD a day" in shell("limits", "set", "--day", "2.50", *admin).err
    shown = shell("limits", "show", "--json")
    assert (shown.err, shown.value["limit"], shown.value["left"]) == ("", "2.50", "2.50")
    assert "2.50 USD" in shell("limits", "show").out
    assert shell("limits", "set", "--day", "none", *admin, "--json").value["limit"] is None
    assert shell("limits", "show", "--json").value["left"] is None


@pytest.mark.guarantee("M1")
def test_usage_tells_a_run_line_by_line_and_a_day_in_sum(seed: "Seed", shell: "Shell") -> None:
    told = shell("usage", seed.run, "--json").value
    assert [(line["kind"], line["provider"], line["cost"], line["input_tokens"]) for line in told["lines"]] == [
        ("model", "Scripted", None, 100)
    ]
    assert (told["spent"], told["unpriced"], told["left_out"], told["ceiling"]) == ("0", 1, 0, None)
    shown = shell("usage", seed.run)
    assert shown.code == 0
    for text in ("unpriced", "120 token", "1 line has no price", told["lines"][0]["span_id"]):
        assert text in shown.out
    day = shell("usage", "--json").value
    assert [(total["lines"], total["quantity"]) for total in day["totals"]] == [(3, "360")]
    assert shell("usage", "--day", "today", "--json").value["day"] == day["day"]
    assert shell("usage", "--day", day["day"], "--json").value["totals"] == day["totals"]
    assert "nothing was used on this day" in shell("usage", "--day", "2020-01-01").out


@pytest.mark.guarantee("T1")
def test_usage_that_cannot_be_told_is_refused_in_a_sentence(seed: "Seed", shell: "Shell") -> None:
    for arguments, code, said in [
        (["usage", str(uuid4())], 1, "there is no run"),
        (["usage", seed.run, "--organization", str(uuid4())], 1, "there is no run"),
        (["usage", seed.run, "--day", "today"], 2, "name a run or a day"),
        (["usage", "--day", "31.12."], 2, "is no date"),
    ]:
        ended = shell(*arguments)
        assert (ended.code, ended.out) == (code, ""), arguments
        assert said in ended.err
