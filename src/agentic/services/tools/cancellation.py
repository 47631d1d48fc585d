"""Telling a cancellation that is meant for us from one that foreign code let escape.

A handler may cancel a task of its own and let the error out; taken for ours it would end the run's segment as if its worker stopped.
"""

import asyncio


def asked_to_stop() -> bool:
    """Whether somebody cancelled the current task. ``False`` for a ``CancelledError`` that belongs to nobody here."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
