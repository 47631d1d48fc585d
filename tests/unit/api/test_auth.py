"""Bearer tokens: what counts as proof of who calls, and what does not."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import jwt
import pytest

from agentic.api.auth import Caller, JwtAuthenticator, NotAuthenticated
from agentic.contract.errors import ProgramFault

SECRET = "a secret that only tests know, long enough to sign with any of the HMAC algorithms"
ORGANIZATION, USER = uuid4(), uuid4()


def claims(**changed: Any) -> dict[str, Any]:
    told = {
        "sub": str(USER),
        "aud": "authenticated",
        "role": "authenticated",
        "exp": int(time.time()) + 60,
        "app_metadata": {"organization_id": str(ORGANIZATION)},
        **changed,
    }
    return {name: value for name, value in told.items() if value is not None}


def signed(secret: str = SECRET, algorithm: str = "HS256", **changed: Any) -> str:
    return "Bearer " + jwt.encode(claims(**changed), secret, algorithm=algorithm)


def by_hand(header: dict[str, Any], signature: str = "") -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims())]
    return "Bearer " + ".".join([*parts, signature])


async def test_a_token_of_the_issuer_says_who_calls() -> None:
    found = await JwtAuthenticator(SECRET).authenticate(signed())
    assert found == Caller(organization_id=ORGANIZATION, user_id=USER)


FORGED: dict[str, Callable[[], str | None]] = {
    "no header": lambda: None,
    "empty header": lambda: "",
    "no token": lambda: "Bearer ",
    "another scheme": lambda: "Basic dXNlcjpwYXNz",
    "no JWT": lambda: "Bearer not.a.token",
    "huge": lambda: "Bearer " + "x" * 10_000,
    "no scheme": lambda: signed().removeprefix("Bearer "),
    "another secret": lambda: signed(secret="another secret that is long enough to sign"),
    "HS512": lambda: signed(algorithm="HS512"),
    "alg none": lambda: by_hand({"alg": "none", "typ": "JWT"}),
    "alg None": lambda: by_hand({"alg": "None", "typ": "JWT"}),
    "alg RS256": lambda: by_hand({"alg": "RS256", "typ": "JWT"}, "AAAA"),
    "key in the header": lambda: by_hand({"alg": "HS256", "jwk": {"kty": "oct", "k": "AAAA"}}, "AAAA"),
    "expired": lambda: signed(exp=int(time.time()) - 60),
    "never expires": lambda: signed(exp=None),
    "not yet valid": lambda: signed(nbf=int(time.time()) + 600),
    "another audience": lambda: signed(aud="anon"),
    "no audience": lambda: signed(aud=None),
    "no person": lambda: signed(sub=None),
    "person is no id": lambda: signed(sub="per@fjord.example"),
    "no metadata": lambda: signed(app_metadata=None),
    "metadata is text": lambda: signed(app_metadata="organization"),
    "no organization": lambda: signed(app_metadata={}),
    "organization is no id": lambda: signed(app_metadata={"organization_id": "ours"}),
    "organization that the user wrote": lambda: signed(
        app_metadata=None, user_metadata={"organization_id": str(ORGANIZATION)}
    ),
}


@pytest.mark.guarantee("A5")
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
async def test_anything_else_is_refused(forged: Callable[[], str | None]) -> None:
    with pytest.raises(NotAuthenticated) as refused:
        await JwtAuthenticator(SECRET).authenticate(forged())
    assert SECRET not in str(refused.value)


async def test_clocks_may_differ_by_the_leeway_and_no_more() -> None:
    late = signed(exp=int(time.time()) - 5)
    assert (await JwtAuthenticator(SECRET, leeway_s=60).authenticate(late)).user_id == USER
    with pytest.raises(NotAuthenticated, match="expired"):
        await JwtAuthenticator(SECRET, leeway_s=0).authenticate(late)


def test_a_secret_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(ProgramFault, match="32 bytes"):
        JwtAuthenticator("short")
