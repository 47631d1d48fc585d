"""Secrets are read back as they were, and never shown."""

import copy
import pickle

import pytest

from agentic.contract.errors import ProgramFault
from agentic.services.connections.models import Kind
from agentic.services.connections.oauth import Tokens
from agentic.services.connections.secrets import ApiKey, OAuthSecret, Secret, check, decoded, encoded, values

KEY = ApiKey(value="key-value-of-ada")
CLIENT = OAuthSecret(client_id="ada", client_secret="client-value", access_token="access-value")
CONSENT = OAuthSecret(client_id="ada", client_secret=None, refresh_token="refresh-value")


@pytest.mark.parametrize(
    ("kind", "secret"), [(Kind.API_KEY, KEY), (Kind.OAUTH_CLIENT, CLIENT), (Kind.OAUTH_REFRESH, CONSENT)]
)
def test_a_secret_is_read_back_as_it_was(kind: Kind, secret: Secret) -> None:
    check(kind, secret)
    assert decoded(kind, encoded(secret)) == secret


def test_a_secret_of_another_build_is_a_fault_that_quotes_nothing() -> None:
    for body in (b'{"valeur": "key-value-of-ada"}', b"key-value-of-ada"):
        with pytest.raises(ProgramFault) as fault:
            decoded(Kind.API_KEY, body)
        assert "ada" not in str(fault.value)
        assert fault.value.__cause__ is None


@pytest.mark.guarantee("B2")
@pytest.mark.parametrize(
    "held", [KEY, CLIENT, CONSENT, Tokens(access_token="access-value", refresh_token="refresh-value", lifetime_s=1)]
)
def test_no_secret_is_in_a_repr_a_text_a_pickle_or_a_copy(held: object) -> None:
    for text in (repr(held), str(held), f"{held}", repr([held])):
        assert "value" not in text
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            act(held)


@pytest.mark.parametrize(
    ("kind", "secret", "why"),
    [
        (Kind.API_KEY, CLIENT, "one of the same kind"),
        (Kind.OAUTH_CLIENT, KEY, "one of the same kind"),
        (Kind.API_KEY, ApiKey(value="abc"), "at least 6"),
        (Kind.API_KEY, ApiKey(value="abc defg\n"), "printable"),
        (Kind.API_KEY, ApiKey(value=" abcdefg"), "printable"),
        (Kind.API_KEY, ApiKey(value="schlüssel"), "printable"),
        (Kind.OAUTH_CLIENT, OAuthSecret(client_id="ada", client_secret=None), "needs its secret"),
        (Kind.OAUTH_REFRESH, OAuthSecret(client_id="ada", client_secret="client-value"), "refresh token"),
        (Kind.OAUTH_CLIENT, OAuthSecret(client_id=" ", client_secret="client-value"), "no id"),
    ],
)
def test_a_secret_of_no_use_is_refused_without_being_quoted(kind: Kind, secret: Secret, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        check(kind, secret)
    assert not any(value in str(refused.value) for value in values(secret))
