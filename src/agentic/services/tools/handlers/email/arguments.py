"""Arguments that the email tools share, each narrow enough to be put into a header or a query as it is.

No line break and no control character fits into any of them, so nothing a model writes begins a header of its own.
"""

from typing import Annotated
from uuid import UUID

from pydantic import Field

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+"
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""Control characters, line breaks of any kind, and what turns the direction of a line that a person reads."""

Address = Annotated[str, Field(max_length=254, pattern=rf"^{_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})+$")]
"""One bare address such as ``per@fjord.example``: ASCII, without display name, quotes or comment."""
Line = Annotated[str, Field(min_length=1, max_length=200, pattern=rf"^[^{_UNSEEN}]+$")]
"""Text on one line."""
EmailId = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[!-~]*[!-\x2d\x2f-~][!-~]*$")]
"""An id as the provider wrote it: printable ASCII, and more than dots alone."""
Mailbox = Annotated[
    UUID | None, Field(description="Which of the organization's mailboxes; leave it out when there is only one.")
]
"""The public argument by which a call chooses its connection (docs/connections.md)."""
