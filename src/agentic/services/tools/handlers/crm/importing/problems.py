"""What is wrong with a file or one of its rows, said to the person who gave it."""

from dataclasses import dataclass

from agentic.contract.errors import AgenticError


class CsvProblem(AgenticError):
    """The file cannot be read. One sentence: what is wrong where, and what to do. Nothing was stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BadRow:
    """A row that is left out while the others go in.

    Attributes:
        line: the line of the file it starts on.
        why: what is wrong with it.
    """

    line: int
    why: str

    def __str__(self) -> str:
        """As a person reads it."""
        return f"line {self.line}: {self.why}"
