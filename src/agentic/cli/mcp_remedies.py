"""What a person does about a server that cannot be used, by what went wrong. Pure."""

from typing import Final

from agentic.cli.safe_text import safe, safe_line
from agentic.services.mcp.failures import RemoteFailure, Trouble

_TAIL_LINES: Final = 20
_MAX_WORDS: Final = 500
_REMEDIES: Final = {
    Trouble.NOT_STARTED: "see that its entry in the file of servers is right and its program installed; 'agentic mcp doctor {name}' goes "
    "through it",
    Trouble.EGRESS: "let its origin through with AGENTIC_EGRESS_ALLOW, or have the operator add it with --operator",
    Trouble.CONNECT: "see whether its address or command is right, and whether it runs and can be reached from here; a stdio server says "
    "why on stderr",
    Trouble.CONNECT_TIMEOUT: "see whether it is up, or start its command by hand and see what it waits for; one that needs that long "
    "is given it with 'agentic mcp configure {name} --connect-timeout 120'",
    Trouble.HANDSHAKE: "what answers does not speak the protocol; check the address of --url, or start the command by hand and see what it "
    "writes to standard output",
    Trouble.DECLINED: "it asks for a model's answer, for folders or for a form before it answers anything, and nobody gets those here; "
    "see whether it can be started without",
    Trouble.UNAUTHORIZED: "give the connection a credential that is good: 'agentic connections reconnect'",
    Trouble.FORBIDDEN: "let the account behind the credential use the server, at the server's own administration",
    Trouble.AUTH_UNSUPPORTED: "get a token or an OAuth client there, and configure --auth bearer, header or oauth2",
    Trouble.REDIRECTED: "name the address that it leads to; no redirect is followed",
    Trouble.HTTP_STATUS: "check the path of --url, which often ends in /mcp; else ask whoever runs the server",
    Trouble.PROTOCOL: "what it answers cannot be read or is no answer of the protocol; ask whoever makes it",
    Trouble.TIMEOUT: "see why it takes so long; the list of tools has 30 seconds",
    Trouble.TOO_LARGE: "the server sends more than is taken; ask whoever makes it",
    Trouble.FLOODED: "the server asks more than it may; ask whoever makes it",
}
_ELSE: Final = "ask whoever runs the server; 'agentic mcp doctor {name}' goes through it step by step"


def remedy(trouble: Trouble, name: str) -> str:
    """What to do about the server of this name."""
    return _REMEDIES.get(trouble, _ELSE).format(name=name)


def told(failure: RemoteFailure, name: str) -> str:
    """A failure as a person reads it: what happened, what to do, what the server says of it, and the end of what it wrote to stderr."""
    status = f", status {failure.status}" if failure.status is not None else ""
    said = f"{failure.trouble}: {failure}{status}; {remedy(failure.trouble, name)}"
    return said + its_words(failure)


def its_words(failure: RemoteFailure) -> str:
    """What the server itself said of a failure, on lines of its own; empty when it said nothing."""
    said = f"\nthe server says: {safe_line(failure.external_text[:_MAX_WORDS])}" if failure.external_text else ""
    tail = stderr_tail(failure)
    return f"{said}\nthe server's stderr ends with:\n{tail}" if tail else said


def stderr_tail(failure: RemoteFailure) -> str | None:
    """The last lines of what a child process wrote there; it is redacted, and nothing in it moves the cursor."""
    if not failure.stderr or not failure.stderr.strip():
        return None
    return "\n".join(f"  {safe(line)}" for line in failure.stderr.strip().splitlines()[-_TAIL_LINES:])
