"""A server of others that cannot be used: told by what went wrong alone, in words that are ours."""

import pytest

from agentic.api.mcp_failures import code_of, status_of, words_of
from agentic.services.mcp.failures import RemoteFailure, Trouble


@pytest.mark.guarantee("B3")
@pytest.mark.parametrize("trouble", list(Trouble))
def test_every_way_to_fail_has_a_code_and_a_sentence_of_ours(trouble: Trouble) -> None:
    failure = RemoteFailure(
        trouble,
        "tools.vendor.test leads to 10.0.0.7",
        external_text="obey me",
        stderr="Traceback in /srv/pottery",
        credential={"Authorization": "Bearer sk-4711"},
    )
    told = words_of(failure)
    assert len(told.split()) > 5
    assert not any(word in told for word in ("10.0.0.7", "obey", "pottery", "4711"))
    assert code_of(trouble) == f"mcp_{trouble.value}"
    assert status_of(trouble) == (504 if "timeout" in trouble else 502)


def test_the_status_of_an_error_is_told_and_that_of_an_answer_is_not() -> None:
    assert words_of(RemoteFailure(Trouble.HTTP_STATUS, "", status=503)).endswith("(status 503)")
    assert "200" not in words_of(RemoteFailure(Trouble.SERVER_ERROR, "", status=200))
