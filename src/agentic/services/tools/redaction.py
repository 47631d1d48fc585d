"""Removes credentials from data and text: by the name of their field, and by the exact secret values this call used.

No guess at what a secret looks like: that would remove honest text and miss the next vendor's format (ADR 0014).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus

from pydantic import SecretBytes, SecretStr

from agentic.contract.json_types import JsonArray, JsonObject, JsonValue
from agentic.contract.plain import free_key

MASK: Final = "[redacted]"
SHORT_MASK: Final = "***"
MIN_SECRET_CHARACTERS: Final = 6

_EXACT_NAMES: Final = frozenset(
    {
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "privatekey",
        "idtoken",
        "proxyauthorization",
        "pwd",
        "secret",
        "setcookie",
        "token",
    }
)
_NAME_ENDINGS: Final = (
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authtoken",
    "bearertoken",
    "bottoken",
    "password",
    "privatekey",
    "refreshtoken",
    "secret",
    "secretkey",
    "secrettoken",
    "sessiontoken",
    "signingkey",
)
_MAX_NAME: Final = 64
_NAME_FIELDS: Final = ("name", "key", "header")
# No prefix, no word boundary: what stands before the name does not matter, and looking for it costs time on hostile text.
_NAMED_VALUE: Final = re.compile(
    r"""(?ix)
    ( access[_-]?key | access[_-]?token | api[_-]?key | auth[_-]?token | authorization | cookie | passwd | password
    | private[_-]?key | refresh[_-]?token | secret | secret[_-]?key | signing[_-]?key | token )
    ( \\{0,9} ["']? \s* [=:] \s* \\{0,9} (["'])? )
    (?(3) [^"'\\\r\n]{1,4096} | (?: (?: bearer | basic | token | digest ) \s+ )? [^\s"'&,;<>)\]}\\]+ )
    """
)
_COOKIES: Final = re.compile(r"""(?i)(cookie\\{0,9}["']?\s*[=:]\s*\\{0,9}["']?)[^"'\\\r\n]{1,4096}""")
"""A header of cookies has several, each of a name of its own."""
_LONG: Final = 512
_MAX_KEYS: Final = 1_024
_NUMBER: Final = re.compile(r"[0-9+.e-]+")
_USER_INFO: Final = re.compile(r"://[^\s/@:]{1,200}:[^\s/?#]{1,500}@")


def redact(value: JsonValue, secrets: Sequence[str] = ()) -> JsonValue:
    """Return `value` without credentials; the argument is left as it is.

    - What stands under the name of a credential becomes `[redacted]` (`token`, `apiKey`, `X-Api-Key`, `client_secret` …, any
      casing, also as `{"name": "Authorization", "value": …}`); `null`, `true` and `false` stay, they tell nothing.
    - Each of `secrets` is removed from every string and key, plain, percent-encoded, escaped as JSON
      and in base64 at any offset, also where
      it is split over neighbouring strings of a list.

    Args:
        value: data as `plain` returns it.
        secrets: the exact values this call used; shorter than six characters they are ignored, for they would hit anything.

    Source: B2, ADR 0014.
    """
    return _Redaction(secrets).value(value)


def redact_text(text: str, secrets: Sequence[str] = ()) -> str:
    """Return an error message or log line without credentials.

    Besides `secrets` as in `redact`, removes what follows the name of a credential (`api_key=…`, `Authorization: Bearer …`) and the
    user and password of an address.

    Source: B2.
    """
    cleaned = _Redaction(secrets).text(text)
    cleaned = _NAMED_VALUE.sub(lambda match: f"{match[1]}{match[2]}{MASK}", cleaned)
    cleaned = _COOKIES.sub(lambda match: f"{match[1]}{MASK}", cleaned)
    return _USER_INFO.sub(f"://{MASK}@", cleaned)


def redact_bytes(body: bytes, secrets: Sequence[str]) -> bytes:
    """Return `body` without the secret values, each in any of the forms `redact` knows; other bytes stay as they are.

    Source: B2.
    """
    if _needles(tuple(secrets)) is None:
        return body
    # Latin 1 maps bytes to characters one to one; a secret in other characters stands there as the bytes of its UTF-8.
    seen = [secret.encode("utf-8", "replace").decode("latin-1") for secret in secrets]
    return _Redaction((*secrets, *seen)).text(body.decode("latin-1")).encode("latin-1")


def secret_values(given: object) -> tuple[str, ...]:
    """The secrets a handler named, as text: one or several, also as bytes or in pydantic's wrappers. Never raises.

    Source: B2, J4.
    """
    try:
        return tuple(_secret_values(given))
    except Exception:  # noqa: BLE001 - whatever a handler put there, its effect stays done (J4)
        return ()


def _secret_values(given: object) -> Iterator[str]:
    match given:
        case None:
            return
        case str():
            yield given
        case bytes() | bytearray():
            yield given.decode("utf-8", "replace")
        case SecretStr() | SecretBytes():
            yield from _secret_values(given.get_secret_value())
        case tuple() | list() | set() | frozenset():
            for one in given:
                yield from secret_values(one)
        case _:
            yield str(given)


def is_credential_name(name: str) -> bool:
    """Say whether a field of this name holds a credential. `page_token`, `token_count` and the like do not."""
    return len(name) <= _MAX_NAME and _is_credential_name(name)


@lru_cache(maxsize=1_024)
def _is_credential_name(name: str) -> bool:
    plain_name = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain_name in _EXACT_NAMES or plain_name.endswith(_NAME_ENDINGS)


class _Redaction:
    def __init__(self, secrets: Sequence[str]) -> None:
        self._needles = _needles(tuple(secrets))
        self._keys: dict[str, tuple[str, bool]] = {}
        """Rows repeat their keys: what becomes of each, and whether it names a credential."""

    def value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._joined([self.value(item) for item in value])
        if isinstance(value, dict):
            return self._object(value)
        if self._needles is not None and self._needles.numeric and isinstance(value, int | float):
            return MASK if self._needles.found_in(str(value)) else value
        return value

    def text(self, text: str) -> str:
        if self._needles is None or not self._needles.found_in(text):
            return text
        cleaned = self._needles.pattern.sub(MASK, text)
        if not self._needles.found_in(cleaned):
            return cleaned
        # The mask itself completes or contains a secret. What is shorter than any secret cannot.
        return SHORT_MASK

    def _object(self, members: JsonObject) -> JsonObject:
        named = _named_value(members)
        cleaned: JsonObject = {}
        for key, item in members.items():
            name, hides = self._keys.get(key) or self._key(key)
            if name in cleaned:
                name = free_key(name, cleaned)
            hides = hides or (named and key.lower() == "value")
            if hides and item is not None and not isinstance(item, bool):
                cleaned[name] = MASK
            else:
                cleaned[name] = self.value(item)
        return cleaned

    def _key(self, key: str) -> tuple[str, bool]:
        found = self.text(key), is_credential_name(key)
        if len(self._keys) < _MAX_KEYS:
            self._keys[key] = found
        return found

    def _joined(self, items: JsonArray) -> JsonArray:
        """Mask the neighbouring strings over which a secret is split, in nested lists too."""
        if self._needles is None:
            return items
        leaves = list(_leaves(items))
        if len(leaves) < 2:
            return items
        joined = "".join(text for _, _, text in leaves)
        if not self._needles.found_in(joined):
            return items
        spans = [match.span() for match in self._needles.pattern.finditer(joined)]
        start = 0
        for place, index, text in leaves:
            end = start + len(text)
            if any(begin < end and start < stop for begin, stop in spans):
                place[index] = MASK
            start = end
        return items


def _leaves(items: JsonArray) -> Iterator[tuple[JsonArray, int, str]]:
    for index, item in enumerate(items):
        if isinstance(item, str):
            yield items, index, item
        elif isinstance(item, list):
            yield from _leaves(item)


def _named_value(members: JsonObject) -> bool:
    """Whether this is one header or field as `{"name": …, "value": …}`."""
    if not any(len(key) == len("value") and key.lower() == "value" for key in members):
        return False
    lowered = {key.lower(): item for key, item in members.items()}
    return any(
        isinstance(lowered.get(field), str) and is_credential_name(str(lowered[field])) for field in _NAME_FIELDS
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Needles:
    """Every form of the secrets of a call, longest first, so that a secret that begins with another one goes whole."""

    forms: tuple[str, ...]
    pattern: re.Pattern[str]
    numeric: bool
    """Whether one of them can be a number's text."""

    def found_in(self, text: str) -> bool:
        """Whether the text holds one. In a long text, plain searches one after the other beat the pattern many times."""
        if len(text) < _LONG:
            return self.pattern.search(text) is not None
        return any(form in text for form in self.forms)


@lru_cache(maxsize=64)
def _needles(secrets: tuple[str, ...]) -> _Needles | None:
    needles: set[str] = set()
    for secret in secrets:
        if len(secret) >= MIN_SECRET_CHARACTERS:
            needles |= _forms(secret)
    if not needles:
        return None
    ordered = sorted(needles, key=lambda needle: (-len(needle), needle))
    return _Needles(
        forms=tuple(ordered),
        pattern=re.compile("|".join(map(re.escape, ordered))),
        numeric=any(_NUMBER.fullmatch(needle) for needle in ordered),
    )


def _forms(secret: str) -> set[str]:
    raw = secret.encode("utf-8", "replace")
    forms = {secret, quote(raw, safe=""), quote(raw), quote_plus(raw), quote(raw, safe="").replace("%", "%25")}
    forms |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    forms |= {re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in set(forms)}
    for offset in range(3):
        # Inside a longer base64 text only the characters made of the secret's bits alone are the same every time.
        coded = base64.b64encode(b"\0" * offset + raw).decode()
        first, last = (offset * 8 + 5) // 6, (offset + len(raw)) * 8 // 6
        forms |= {coded[first:last], coded[first:last].replace("+", "-").replace("/", "_")}
    return forms
