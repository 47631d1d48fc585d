"""What is wrong with a CSV file, said to the person who gave it."""

from agentic.contract.errors import AgenticError


class CsvProblem(AgenticError):
    """The file cannot be loaded. One sentence: what is wrong where, and what to do. Nothing was stored."""
