"""What every test in here is held to."""

from collections.abc import AsyncIterator, Awaitable, Callable

import psutil
import pytest

from tests.integration.mcp.stage import alive, until


@pytest.fixture
async def nothing_left() -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Sees to it that a test leaves no process and no descriptor of its own."""
    me = psutil.Process()
    before = me.num_fds()
    children = {each.pid for each in me.children(recursive=True)}

    async def look() -> None:
        await until(
            lambda: not [each for each in me.children(recursive=True) if each.pid not in children and alive(each.pid)]
        )
        await until(lambda: me.num_fds() <= before)

    yield look
    await look()
