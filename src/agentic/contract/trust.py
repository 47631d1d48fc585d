"""Trust labels: how far the origin of a piece of text may be believed.

Labels are ordered. A run carries the lowest label its context has ever held (its low-water mark, ADR 0012); the text a model
writes does not lower it, because it can say nothing its context did not hold.
"""

from enum import StrEnum


class Trust(StrEnum):
    """Where text came from, from least to most trusted."""

    EXTERNAL = "external"
    """Written by somebody outside: a web page, an email, a remote server, an argument a model made."""
    INTERNAL = "internal"
    """Read from the organization's own records."""
    USER = "user"
    """Typed by the person the run acts for."""
    PLATFORM = "platform"
    """Written by this package or by the definition's author."""

    @property
    def rank(self) -> int:
        """Position in the order, 0 the least trusted."""
        return _ORDER.index(self)

    def lowered_by(self, other: "Trust") -> "Trust":
        """The lower of the two labels; trust never rises by mixing."""
        return self if self.rank <= other.rank else other


_ORDER = (Trust.EXTERNAL, Trust.INTERNAL, Trust.USER, Trust.PLATFORM)
