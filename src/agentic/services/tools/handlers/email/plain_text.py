"""The text of an email's body, bounded. Pure.

Nylas gives the HTML part when there is one and does not say which it gave. Tags are read by the standard library's parser, never
rendered: scripts, styles and comments are dropped, links keep their words and lose their addresses.
"""

import re
from html.parser import HTMLParser

MAX_MARKUP_CHARS = 200_000
"""How much of a body is read; what follows is left out."""
_MARKUP = re.compile(
    r"<(?:!doctype|html|head|body|div|p|br|table|tr|td|span|a|ul|ol|img|font|blockquote|h[1-6]|b|i)(?=[\s/>])[^<>]*>",
    re.IGNORECASE,
)
_DROPPED = frozenset(
    {"script", "style", "title", "template", "noscript", "svg", "math", "object", "select", "textarea"}
)
_LINES = frozenset(
    {
        "p",
        "div",
        "br",
        "tr",
        "table",
        "ul",
        "ol",
        "li",
        "blockquote",
        "pre",
        "hr",
        "section",
        "article",
        "header",
        "footer",
    }
    | {f"h{level}" for level in range(1, 7)}
)
_CELLS = frozenset({"td", "th"})


def text_of(body: str, *, max_bytes: int) -> tuple[str, bool]:
    """The text of a body, and whether anything of it was left out.

    Args:
        body: HTML or plain text.
        max_bytes: of the text in UTF-8.
    """
    read = body[:MAX_MARKUP_CHARS]
    text, whole = _stripped(read) if _MARKUP.search(read) else (read, True)
    tidy = _tidy(text).encode("utf-8", "replace")
    cut = len(tidy) > max_bytes or len(read) < len(body) or not whole
    return tidy[:max_bytes].decode(errors="ignore"), cut


def _stripped(markup: str) -> tuple[str, bool]:
    reader = _Reader()
    # Never closed: the parser's end of input reads what is unfinished again and again, in time that grows with its square.
    reader.feed(markup + "<br>")
    return "".join(reader.parts), not reader.rawdata


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._dropped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED:
            self._dropped.append(tag)
        elif tag in _LINES:
            self.parts.append("\n- " if tag == "li" else "\n")
        elif tag in _CELLS:
            self.parts.append(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _DROPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._dropped:
            del self._dropped[self._dropped.index(tag) :]
        elif tag in _LINES:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._dropped:
            self.parts.append(data)


def _tidy(text: str) -> str:
    """Lines without surrounding blanks, one empty line at most between two."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
