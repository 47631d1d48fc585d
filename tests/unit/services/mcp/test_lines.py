"""What a line of a server is."""

import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from agentic.services.mcp.lines import message_of


def test_a_message_is_that() -> None:
    assert isinstance(message_of(b'{"jsonrpc":"2.0","id":1,"result":{}}'), JSONRPCResponse)
    assert isinstance(message_of(b'{"jsonrpc":"2.0","method":"m"}'), JSONRPCNotification)


@pytest.mark.parametrize("text", [b"a\\ud83d", b"a\xff"])
def test_half_a_character_costs_itself_alone(text: bytes) -> None:
    message = message_of(b'{"jsonrpc":"2.0","id":1,"result":{"text":"%s"}}' % text)
    assert isinstance(message, JSONRPCResponse) and message.result == {"text": "a\ufffd"}


@pytest.mark.parametrize(
    "rest", [b'"result":null', b'"result":"words"', b'"error":"words"', b'"result":%s%s' % (b"[" * 300, b"]" * 300)]
)
def test_an_answer_that_cannot_be_read_is_an_error_for_whoever_waits(rest: bytes) -> None:
    message = message_of(b'{"jsonrpc":"2.0","id":7,%s}' % rest)
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.code) == (7, -32700)


@pytest.mark.parametrize(
    "line",
    [
        b"a banner",
        b"{broken",
        b"[]",
        b"7",
        b'{"id":7,"level":"info","result":"none"}',
        b'{"jsonrpc":"2.0","id":7}',
        b'{"jsonrpc":"2.0","id":true,"result":null}',
        b'{"jsonrpc":"2.0","id":[7],"result":null}',
        b'{"jsonrpc":"2.0","id":7,"result":%s%s}' % (b"[" * 50_000, b"]" * 50_000),
    ],
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert message_of(line) is None
