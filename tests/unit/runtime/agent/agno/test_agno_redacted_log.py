"""What the framework logs holds no credential (B2)."""

import logging

import pytest

from agentic.runtime.agent.agno.redacted_log import RedactedLog
from agentic.runtime.agent.agno.scripted import ScriptedModel


def logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> str:
    """Log every kind of record the framework makes, each with a credential in it."""
    log = RedactedLog()
    logger = logging.getLogger("agno")
    model = ScriptedModel()
    model.api_key = "the-models-own-key"  # type: ignore[attr-defined]
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-the-environment")
    log.learn(model)
    log.learn(model)
    monkeypatch.setattr(logger, "propagate", True)
    try:
        logger.error("refused: %s", "the-models-own-key")
        logger.warning("refused the-key-of-the-environment")
        logger.error("Authorization: Bearer abcdefgh12345678")
        try:
            int("the-models-own-key")
        except ValueError:
            logger.exception("it failed")
    finally:
        logger.removeFilter(log)
    return caplog.text


@pytest.mark.guarantee("B2")
def test_no_credential_is_in_a_record_or_its_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = logged(monkeypatch, caplog)
    for credential in ("the-models-own-key", "the-key-of-the-environment", "abcdefgh12345678"):
        assert credential not in text
    assert "ValueError: invalid literal for int() with base 10: '[redacted]'" in text
    assert "refused: [redacted]" in text
