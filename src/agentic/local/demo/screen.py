"""What the demo shows while it works: all of it on standard error, so that standard output is the summary's.

Texts of models, contacts and providers are shown as characters: no markup, no control sequences.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_STYLES = {"ok": "green", "error": "red", "unknown": "yellow", "lost": "red"}


class Screen:
    """Prints lines, a spinner while something is awaited, and the two cards."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, emoji=False)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """A spinner until the block ends; without a terminal nothing moves."""
        with self._console.status(what):
            yield

    def title(self, text: str) -> None:
        """A heading."""
        self._console.print()
        self._line(Text(printable(text), style="bold"))

    def done(self, what: str, detail: str = "") -> None:
        """Something is up or was done."""
        line = Text.assemble(("  ✓ ", "green"), (printable(what), ""))
        if detail:
            line.append(f"  {printable(detail)}", style="dim")
        self._line(line)

    def note(self, text: str) -> None:
        """A sentence in between."""
        self._line(Text(f"  {printable(text)}", style="dim"))

    def alarm(self, text: str) -> None:
        """Something went as badly as announced."""
        self._line(Text(f"  ✗ {printable(text)}", style="bold red"))

    def problem(self, text: str) -> None:
        """Why the demo ends; the one sentence a person must read."""
        self._line(Text.assemble(("error: ", "bold red"), printable(text)))

    def ask(self, text: str) -> None:
        """A question; the answer is typed behind it."""
        self._console.print(Text(f"{text} ", style="bold"), end="")

    def span(self, span: Mapping[str, Any]) -> None:
        """A line for a span that closed."""
        kind, status = str(span["kind"]), str(span["status"])
        if kind not in ("tool", "llm"):
            return
        attributes = span.get("attributes") or {}
        name = "model" if kind == "llm" else str(span["name"])
        line = Text.assemble(("  • ", "cyan"), f"{name:<22} ", (_outcome(span), _STYLES.get(status, "dim")))
        detail = _detail(kind, attributes)
        if detail:
            line.append(f"  {detail}", style="dim")
        self._line(line)

    def approval(self, approval: Mapping[str, Any]) -> None:
        """The approval card: exactly what would run (A1)."""
        arguments: dict[str, Any] = json.loads(str(approval["arguments_text"]))
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold")
        table.add_column(overflow="fold")

        def row(name: str, value: object, style: str = "") -> None:
            table.add_row(name, Text(printable(str(value)), style=style))

        if approval.get("shown"):
            row("Preview", approval["shown"], "bold")
        row("Tool", approval["tool"])
        if approval.get("account"):
            row("Account", approval["account"])
        for name, label in (("to", "To"), ("subject", "Subject"), ("body", "Body")):
            if name in arguments:
                row(label, arguments[name])
        row("Arguments", approval["arguments_text"], "dim")
        row("Rule", f"{approval['rule_id']} v{approval['rule_version']}: {approval['reason']}")
        row("Digest", approval["digest"], "dim")
        row("Approval", approval["id"], "dim")
        self._console.print(Panel(table, title="Approval needed", border_style="yellow", title_align="left"))

    def email(self, message: Mapping[str, Any]) -> None:
        """The email as the provider gives it back."""
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for label, value in (
            ("Id", message["id"]),
            ("From", ", ".join(str(person["email"]) for person in message["from"])),
            ("To", ", ".join(str(person["email"]) for person in message["to"])),
            ("Subject", message["subject"]),
            ("Body", message["body"]),
        ):
            table.add_row(label, Text(printable(str(value))))
        self._console.print(Panel(table, title="Stored by the mail provider", border_style="green", title_align="left"))

    def _line(self, text: Text) -> None:
        """Unbroken, so that a pipe carries a sentence whole; a terminal breaks it itself."""
        self._console.print(text, soft_wrap=True)


def printable(text: str) -> str:
    """The text without what a terminal would obey; line breaks stay."""
    return "".join(
        character if character == "\n" or character.isprintable() else "�" for character in text.replace("\r\n", "\n")
    )


def _outcome(span: Mapping[str, Any]) -> str:
    attributes = span.get("attributes") or {}
    if attributes.get("policy.effect") == "require_approval":
        return "waits for a person"
    return str(span.get("code") or span["status"])


def _detail(kind: str, attributes: Mapping[str, Any]) -> str:
    if kind == "llm" and attributes.get("error"):
        return str(attributes["error"])
    if kind == "llm":
        return f"{attributes.get('input_tokens', 0)} + {attributes.get('output_tokens', 0)} tokens"
    attempt = attributes.get("call.attempt", 1)
    told = (
        attributes.get("policy.rule"),
        f"attempt {attempt}" if attempt > 1 else None,
        "replayed" if attributes.get("replayed") else None,
    )
    return " · ".join(str(part) for part in told if part)
