"""What a person types at a terminal when a connection asks for its secrets: unseen, a line each, and nothing is no secret."""

import getpass
import io
import sys

import pytest
from typer import BadParameter

from agentic.cli.connections import _secret
from agentic.services.connections.secrets import ApiKey, OAuthSecret, Secret


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str, client: str | None = None, token: bool = False) -> Secret:
    """What comes of these lines; each is asked for by name and none is echoed."""
    left, asked = list(lines), list[str]()

    def unseen(prompt: str, stream: object) -> str:
        assert stream is sys.stderr
        asked.append(prompt)
        return left.pop(0)

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", unseen)
    secret = _secret(client, token)
    assert left == []
    assert asked == (
        ["The API key: "] if client is None else ["The client's secret: ", "The refresh token: "][: 1 + token]
    )
    return secret


def test_each_secret_is_asked_for_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    key = typed(monkeypatch, " api-key-value \n")
    assert isinstance(key, ApiKey)
    assert key.value == "api-key-value"
    consent = typed(monkeypatch, "", "refresh-value", client="ada", token=True)
    assert isinstance(consent, OAuthSecret)
    assert (consent.client_secret, consent.refresh_token) == (None, "refresh-value")


@pytest.mark.parametrize(
    ("client", "token", "lines"), [(None, False, [""]), ("ada", False, [" "]), ("ada", True, ["", ""])]
)
def test_nothing_is_no_secret(
    monkeypatch: pytest.MonkeyPatch, client: str | None, token: bool, lines: list[str]
) -> None:
    with pytest.raises(BadParameter, match="it brought nothing"):
        typed(monkeypatch, *lines, client=client, token=token)
