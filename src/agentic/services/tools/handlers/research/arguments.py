"""Arguments that several research tools take."""

from typing import Annotated

from pydantic import Field

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

MAX_RESULTS = 10
"""How many results a list tool answers, and how many the vendors give for one price."""

Domain = Annotated[str, Field(max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})+$")]
"""A host name such as ``nordlys.example``, without scheme or path."""
Limit = Annotated[int, Field(ge=1, le=MAX_RESULTS)]
"""How many results are asked for."""
