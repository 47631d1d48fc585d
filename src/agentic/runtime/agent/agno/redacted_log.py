"""Takes credentials out of what agno logs: it logs every provider error as it came, and some providers echo the key (B2)."""

import logging
import traceback

from agno.exceptions import redact_secrets
from agno.models.base import Model

from agentic.runtime.agent.agno.attempts import secrets
from agentic.runtime.agent.agno.providers import keys_in_environment


class RedactedLog(logging.Filter):
    """A filter on agno's loggers; it knows the keys of the models in use and the shapes of others."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: set[str] = set()

    def learn(self, model: Model) -> None:
        """Know this model's credentials from here on, those it takes from the environment too, and see what agno logs."""
        self._keys.update([*secrets(model), *keys_in_environment()])
        for name in ("agno", "agno-team", "agno-workflow"):
            logging.getLogger(name).addFilter(self)  # adding it again changes nothing

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through, its text and its traceback without credentials."""
        record.msg, record.args = self._clean(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip()
            record.exc_info = None  # a handler would print it as it is
        if record.exc_text:
            record.exc_text = self._clean(record.exc_text)
        return True

    def _clean(self, text: str) -> str:
        for key in self._keys:
            text = text.replace(key, "[redacted]")
        return redact_secrets(text)


LOG = RedactedLog()
"""The one filter of this process."""
