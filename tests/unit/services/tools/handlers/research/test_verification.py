"""One closed state for an address, and which addresses are no person's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.tools.handlers.research.verification import Verification, is_role, verification


@pytest.mark.parametrize(
    ("status", "accept_all", "state"),
    [
        ("valid", False, "verified"),
        ("valid", True, "verified"),
        ("invalid", True, "unverifiable"),
        ("invalid", False, "unverifiable"),
        ("disposable", False, "unverifiable"),
        ("accept_all", True, "accepts_all"),
        ("accept_all", None, "accepts_all"),
        ("webmail", False, "unverified"),
        ("unknown", True, "unverified"),
        (None, True, "accepts_all"),
        (None, False, "unverified"),
        (None, None, "unverified"),
    ],
)
def test_the_provider_s_status_outranks_accept_all(status: str | None, accept_all: bool | None, state: str) -> None:
    assert verification(status, accept_all=accept_all) == state


@given(status=st.none() | st.text(), accept_all=st.none() | st.booleans())
def test_whatever_a_provider_says_an_address_that_was_found_has_a_state_and_a_new_word_proves_nothing(
    status: str | None, accept_all: bool | None
) -> None:
    state = verification(status, accept_all=accept_all)
    assert state is not Verification.NOT_FOUND
    assert (state is Verification.VERIFIED) == (status == "valid")


@pytest.mark.parametrize("email", ["info@nordlys.example", "Sales@nordlys.example", "support+no@nordlys.example"])
def test_a_mailbox_of_a_function_is_told_from_a_person_s(email: str) -> None:
    assert is_role(email)
    assert not is_role("ida.holm@nordlys.example")
    assert not is_role("infodal@nordlys.example")
