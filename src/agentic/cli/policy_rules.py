"""Reads rules from a file a person wrote."""

import json
import sys
from pathlib import Path

from pydantic import ValidationError

from agentic.contract.errors import ProgramFault
from agentic.services.policy import RuleDraft

MAX_FILE_BYTES = 1024 * 1024


def read_rules(file: Path) -> list[RuleDraft]:
    """The rules of a file: one JSON object, or a list of them. ``-`` is standard input.

    Raises:
        ProgramFault: the file cannot be read, or a rule in it has the wrong shape; every fault of it is named.
    """
    try:
        text = sys.stdin.read(MAX_FILE_BYTES + 1) if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProgramFault(f"{file} cannot be read: {error}") from error
    if len(text) > MAX_FILE_BYTES:
        raise ProgramFault(f"{file} is larger than {MAX_FILE_BYTES // 1024} KiB; rules are short")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ProgramFault(f"{file} is no JSON: {error}") from error
    return [_rule(item, file, number) for number, item in enumerate(found if isinstance(found, list) else [found], 1)]


def _rule(item: object, file: Path, number: int) -> RuleDraft:
    try:
        return RuleDraft.model_validate(item)
    except ValidationError as error:
        name = item.get("name") if isinstance(item, dict) else None
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the rule'}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_url=False, include_context=False, include_input=False)
        )
        raise ProgramFault(f"rule {number} of {file}{f' ({name})' if name else ''}: {faults}") from error
