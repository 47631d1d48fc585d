"""Where the stand-ins of ``agentic dev`` listen: where they were before they were killed, if nobody else does."""

import os

import pytest

from agentic.local.dev.stand_ins import stand_ins

API, VAULT_KEY = "http://127.0.0.1:9", "a-key"


async def test_after_a_kill_they_are_where_workers_that_stayed_look_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    async with stand_ins(api=API, vault_key=VAULT_KEY) as killed:
        earlier = killed.announced()
    async with stand_ins(api=API, vault_key=VAULT_KEY, earlier=earlier) as again:
        assert again.addresses == killed.addresses


async def test_a_port_that_somebody_took_meanwhile_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    async with (
        stand_ins(api=API, vault_key=VAULT_KEY) as others,
        stand_ins(api=API, vault_key=VAULT_KEY, earlier=others.announced()) as ours,
    ):
        assert not set(others.addresses.values()) & set(ours.addresses.values())
        assert ours.addresses.keys() == others.addresses.keys()
