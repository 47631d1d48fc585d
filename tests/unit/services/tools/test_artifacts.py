"""What handlers save: bounded, without secrets, under the trust of the answer."""

from uuid import uuid4

import pytest

from agentic.contract.trust import Trust
from agentic.services.tools.artifacts import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, Saved, answer_artifact_id
from agentic.services.tools.records import ArtifactRecord
from agentic.services.tools.redaction import redact_bytes

SECRET = "tok_live_0123456789"


def test_what_was_saved_becomes_records_of_the_span_in_order() -> None:
    saved, span = Saved(), uuid4()
    ids = [saved.add(b"a,b", "text/csv"), saved.add(b"{}", "application/json")]
    first, second = saved.records(span_id=span, trust=Trust.EXTERNAL, secrets=())
    assert [first.id, second.id] == ids
    assert (first.body, first.media_type, first.trust, first.span_id) == (b"a,b", "text/csv", Trust.EXTERNAL, span)
    assert (first.size_bytes, len(first.sha256), first.complete, first.place) == (3, 64, True, None)
    assert second.body == b"{}"


@pytest.mark.guarantee("B2")
@pytest.mark.parametrize("around", [b"%PDF\x00\xff", "é".encode(), b""])
def test_a_secret_of_the_call_is_removed_from_what_is_saved(around: bytes) -> None:
    saved = Saved()
    saved.add(around + SECRET.encode() + around, "text/plain")
    [record] = saved.records(span_id=uuid4(), trust=Trust.INTERNAL, secrets=(SECRET,))
    assert record.body == around + b"[redacted]" + around


@pytest.mark.guarantee("B2")
def test_a_secret_beyond_ascii_is_found_in_its_bytes() -> None:
    assert redact_bytes("x=pässwörter!".encode(), ("pässwörter",)) == b"x=[redacted]!"
    assert redact_bytes(b"\xff\xfe\x00", ()) == b"\xff\xfe\x00"


@pytest.mark.guarantee("B1")
def test_too_much_too_many_and_no_media_type_are_refused() -> None:
    saved = Saved()
    with pytest.raises(ValueError, match="at most 8388608 bytes"):
        saved.add(b"x" * (MAX_ARTIFACT_BYTES + 1), "text/plain")
    for media_type in ("text", "Text/Plain", "text/html; charset=utf-8", "text/html\r\nset-cookie: a", ""):
        with pytest.raises(ValueError, match="media type"):
            saved.add(b"", media_type)
    for _ in range(MAX_ARTIFACTS):
        saved.add(b"x", "text/plain")
    with pytest.raises(ValueError, match="at most 16 artifacts"):
        saved.add(b"x", "text/plain")


def test_a_record_has_its_bytes_in_one_place() -> None:
    with pytest.raises(ValueError, match="body or at a place"):
        ArtifactRecord(id=uuid4(), span_id=uuid4(), trust=Trust.INTERNAL, body=None, complete=True)
    with pytest.raises(ValueError, match="body or at a place"):
        ArtifactRecord(id=uuid4(), span_id=uuid4(), trust=Trust.INTERNAL, body=b"", complete=True, place="x")


def test_an_answer_is_kept_under_one_id_a_span() -> None:
    span = uuid4()
    assert answer_artifact_id(span) == answer_artifact_id(span) != answer_artifact_id(uuid4())
