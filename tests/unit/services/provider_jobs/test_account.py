"""An account goes to its provider and nowhere else, and shows no key."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from agentic.contract.errors import AgenticError, ProgramFault
from agentic.services.provider_jobs.fullenrich import FullEnrichAccount

JOB = UUID(int=1)


def account(**other: Any) -> FullEnrichAccount:
    return FullEnrichAccount(**{"key": "key-of-nobody", "callback_origin": "https://api.shop.example", **other})


def test_a_callback_has_the_job_in_its_path() -> None:
    url = account(callback_origin="https://api.shop.example/").callback_url(JOB)
    assert url == f"https://api.shop.example/api/v1/agentic/webhooks/fullenrich/{JOB}"


@pytest.mark.guarantee("B2")
def test_no_key_is_in_its_words() -> None:
    assert "key-of" not in repr(account(earlier_keys=("key-of-before",)))


@pytest.mark.parametrize(
    "other",
    [
        {"key": "short"},
        {"key": "key of nobody"},
        {"earlier_keys": ("",)},
        {"origin": "https://elsewhere.example"},
        {"callback_origin": "http://api.shop.example"},
        {"callback_origin": "https://api.shop.example/prefix"},
        {"credit": Decimal("NaN")},
        {"credit": Decimal(-1)},
        {"window_s": 0},
        {"ask_every_s": -1},
    ],
)
def test_what_cannot_be_an_account_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(AgenticError):
        account(**other)


def test_an_account_is_read_from_the_environment_whole_or_not_at_all() -> None:
    set_ = {"FULLENRICH_API_KEY": "key-of-the-account", "AGENTIC_API_ORIGIN": "https://api.shop.example"}
    account = FullEnrichAccount.from_environment(set_)
    assert (account.key, account.origin) == ("key-of-the-account", "https://app.fullenrich.com")
    assert account.callback_url(UUID(int=1)).startswith("https://api.shop.example/")
    stood_in = FullEnrichAccount.from_environment({**set_, "FULLENRICH_ORIGIN": "http://127.0.0.1:4000"})
    assert stood_in.origin == "http://127.0.0.1:4000"
    for missing in set_:
        with pytest.raises(ProgramFault, match="set FULLENRICH_API_KEY, and AGENTIC_API_ORIGIN"):
            FullEnrichAccount.from_environment({name: value for name, value in set_.items() if name != missing})
    with pytest.raises(ProgramFault, match="only a stand-in"):
        FullEnrichAccount.from_environment({**set_, "FULLENRICH_ORIGIN": "https://elsewhere.example"})
