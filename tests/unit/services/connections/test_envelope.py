"""A secret opens in its own row, under a key of the deployment, and nowhere else."""

import base64
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.errors import ProgramFault
from agentic.services.connections.envelope import Sealed, SecretUnreadable, VaultKeys, VaultLocked

FIRST, SECOND = b"1" * 32, b"2" * 32
ROW, SECRET = b"row of ada", b"a secret of ada"


@given(secret=st.binary(max_size=300), bound=st.binary(max_size=60))
def test_what_is_sealed_opens_and_shows_nothing_of_itself(secret: bytes, bound: bytes) -> None:
    keys = VaultKeys([FIRST])
    sealed = keys.seal(secret, bound)
    assert keys.open(sealed, bound) == secret
    assert keys.seal(secret, bound) != sealed, "each sealing has a data key and a nonce of its own"
    if len(secret) > 4:
        assert secret not in sealed.body


@given(place=st.integers(min_value=0, max_value=200), part=st.sampled_from(["wrapped_key", "body"]))
def test_a_changed_byte_is_noticed_wherever_it_is(place: int, part: str) -> None:
    keys = VaultKeys([FIRST])
    sealed = keys.seal(SECRET, ROW)
    whole = bytearray(sealed.body if part == "body" else sealed.wrapped_key)
    whole[place % len(whole)] ^= 1
    changed = replace(sealed, body=bytes(whole)) if part == "body" else replace(sealed, wrapped_key=bytes(whole))
    with pytest.raises(SecretUnreadable):
        keys.open(changed, ROW)


@pytest.mark.parametrize("cut", [0, 5, 12, 20])
def test_a_secret_that_was_cut_does_not_open(cut: int) -> None:
    keys = VaultKeys([FIRST])
    sealed = keys.seal(SECRET, ROW)
    with pytest.raises(SecretUnreadable):
        keys.open(Sealed(key_id=sealed.key_id, wrapped_key=sealed.wrapped_key, body=sealed.body[:cut]), ROW)


def test_a_secret_opens_for_nothing_but_what_it_was_sealed_for() -> None:
    keys = VaultKeys([FIRST])
    mine, theirs = keys.seal(SECRET, ROW), keys.seal(b"another secret", b"row of per")
    with pytest.raises(SecretUnreadable):
        keys.open(mine, b"row of per")
    with pytest.raises(SecretUnreadable):
        keys.open(Sealed(key_id=mine.key_id, wrapped_key=theirs.wrapped_key, body=mine.body), b"row of per")


def test_a_rotation_keeps_what_is_sealed_and_lets_the_old_key_go() -> None:
    sealed = VaultKeys([FIRST]).seal(SECRET, ROW)
    moved = VaultKeys([SECOND, FIRST]).rewrap(sealed, ROW)
    assert moved.body == sealed.body
    assert VaultKeys([SECOND]).open(moved, ROW) == SECRET
    with pytest.raises(VaultLocked, match="rotate"):
        VaultKeys([FIRST]).open(moved, ROW)


def test_without_a_key_nothing_is_sealed_or_opened_and_the_remedy_is_named() -> None:
    sealed = VaultKeys([FIRST]).seal(SECRET, ROW)
    locked = VaultKeys.parse(" , ")
    for act in (lambda: locked.seal(SECRET, ROW), lambda: locked.open(sealed, ROW), lambda: locked.current):
        with pytest.raises(VaultLocked, match="AGENTIC_VAULT_KEYS"):
            act()


@pytest.mark.parametrize("form", [base64.b64encode, base64.urlsafe_b64encode])
def test_keys_are_read_in_both_forms_of_base64(form: object) -> None:
    texts = [form(key).decode() for key in (b"\xff" * 32, b"\xfe" * 32)]  # type: ignore[operator]
    keys = VaultKeys.parse(f" {texts[0]} ,{texts[1]}")
    assert keys.current == VaultKeys([b"\xff" * 32]).current
    assert keys.open(VaultKeys([b"\xfe" * 32]).seal(SECRET, ROW), ROW) == SECRET


@pytest.mark.guarantee("B2")
@pytest.mark.parametrize("text", ["hunter2hunter2", base64.b64encode(b"short").decode(), "ключ"])
def test_a_key_of_no_use_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ProgramFault, match="key 2 of") as refused:
        VaultKeys.parse(f"{base64.b64encode(FIRST).decode()},{text}")
    assert text not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.guarantee("B2")
def test_keys_are_in_no_repr_and_in_no_pickle() -> None:
    keys = VaultKeys([FIRST])
    assert "1111" not in repr(keys) + str(keys) + repr(keys.seal(SECRET, ROW))
    with pytest.raises(TypeError):
        pickle.dumps(keys)
