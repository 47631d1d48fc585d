"""What a person reads when a database URL leads nowhere: the place and the remedy, never the password."""

import pytest

from agentic.storage.connection import DatabaseUnreachable, DatabaseUrlInvalid, connect, describe


def test_a_database_is_described_without_user_and_password() -> None:
    assert describe("postgresql://ada:s3cret@db.example.test:6543/shop") == "shop at db.example.test:6543"
    assert describe("host=/run/pg dbname=shop user=ada password=s3cret") == "shop at /run/pg"


@pytest.mark.parametrize("url", ["postgresql://ada:s3%cret@db.example.test/x", "s3cret nonsense"])
async def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(DatabaseUrlInvalid) as refused:
        await connect(url)
    assert "s3" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


async def test_an_unreachable_database_is_one_sentence_with_a_remedy() -> None:
    with pytest.raises(DatabaseUnreachable) as refused:
        await connect("postgresql://ada:s3cret@127.0.0.1:1/shop")
    said = str(refused.value)
    assert "shop at 127.0.0.1:1 cannot be reached" in said
    assert "DATABASE_URL" in said
    assert "s3cret" not in said
    assert "\n" not in said
