"""``agentic demo``: what can go wrong is found first, then the stage is set, the story told, and everything stopped again."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, assert_never

from agentic.contract.errors import AgenticError
from agentic.local.demo.asking import can_ask
from agentic.local.demo.casting import MODEL, Casting, cast
from agentic.local.demo.enrichment.summary import EnrichmentSummary
from agentic.local.demo.enrichment.summary import broken_promise as broken_promise_of_jobs
from agentic.local.demo.enrichment.summary import summary as summary_of_jobs
from agentic.local.demo.mcp.names import SERVER
from agentic.local.demo.mcp.summary import McpSummary
from agentic.local.demo.mcp.summary import broken_promise as broken_promise_of_servers
from agentic.local.demo.mcp.summary import summary as summary_of_servers
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.screen import Screen
from agentic.local.demo.settings import REHEARSAL
from agentic.local.demo.summary import Summary, broken_promise, error_line, summary
from agentic.local.demo.workers import Workers
from agentic.local.home import Home
from agentic.local.loopback import keep_off_proxies
from agentic.local.program import command
from agentic.storage.scoped_db import KEY_VARIABLE, URL_VARIABLE

OK, FAILED, CANNOT_ASK, INTERRUPTED = 0, 1, 2, 130
Tree = Mapping[str, Any]
Emails = Sequence[Mapping[str, Any]]
ShowTree = Callable[[Tree], None]
End = Summary | EnrichmentSummary | McpSummary


@dataclass(kw_only=True, slots=True)
class _Run:
    """What is known of the run when the demo ends early."""

    id: str | None = None


def demo(options: DemoOptions, show_tree: ShowTree | None = None) -> int:
    """Run the demo; the exit status of the process.

    Args:
        options: what the person chose.
        show_tree: shows the finished run, in the shape of ``GET /v1/runs/{id}``.

    Returns:
        0 when everything came out as promised, 1 with a sentence when not, 2 when nobody can answer the approval, 130 after Ctrl-C.
    """
    began = time.monotonic()
    screen = Screen()
    if not options.yes and not can_ask():
        sent = "the batch is sent" if options.enrich else "the note is written" if options.mcp else "the email is sent"
        return _failed(
            f"the demo asks before {sent}, and there is no terminal to ask in; add --yes to answer yes",
            options,
            screen,
            status=CANNOT_ASK,
        )
    run = _Run()
    try:
        Home(options.folder).check()
        casting = cast(options)
        _say_who_plays(casting, screen)
        keep_off_proxies()
        _keep_to_one_database()
        tree, emails, end = asyncio.run(_tell(options, casting, screen, run, elapsed=lambda: time.monotonic() - began))
    except AgenticError as error:
        return _failed(str(error), options, screen, run_id=run.id)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _failed("the demo was interrupted", options, screen, run_id=run.id, status=INTERRUPTED)
    except Exception as error:
        _print_line(options, error_line(f"unexpected {type(error).__name__}: {error}", run.id))
        raise  # the command line says it to people
    if show_tree is not None:
        show_tree(tree)
    return _conclude(end, emails, tree, options, screen)


async def _tell(
    options: DemoOptions, casting: Casting, screen: Screen, run: "_Run", *, elapsed: Callable[[], float]
) -> tuple[Tree, Emails, End]:
    _end_in_order_on(signal.SIGTERM)
    home = Home(options.folder)
    workers = Workers()
    async with AsyncExitStack() as open_:
        open_.push_async_callback(workers.stop)
        await workers.prepare()
        url = await open_.enter_async_context(_database(home, screen))
        # imported late: it takes a second or two, in which Postgres and the first worker start
        from agentic.local.demo.enrichment.story import EnrichmentStory
        from agentic.local.demo.mcp.story import McpStory
        from agentic.local.demo.stage import set_stage
        from agentic.local.demo.story import Story

        stage = await open_.enter_async_context(set_stage(url, home, options, casting, workers, screen))
        open_.push_async_callback(workers.stop)  # before what they work with
        telling = EnrichmentStory if options.enrich else McpStory if options.mcp else Story
        story = telling(stage, options, screen, casting, elapsed)
        try:
            tree = await story.tell()
        except BaseException as error:
            run.id = None if story.run_id is None else str(story.run_id)
            if story.waits_for is not None:
                _how_to_go_on(screen, story.waits_for, options)
            elif run.id is not None and isinstance(error, asyncio.CancelledError):
                screen.note(_goes_on(run.id))
            raise
        emails = await stage.emails(tree["run"]["id"])
        for left in await stage.still_open():
            screen.note(_goes_on(str(left)))
        if isinstance(story, EnrichmentStory):
            return (
                tree,
                emails,
                summary_of_jobs(
                    tree,
                    story.booked,
                    model=casting.model,
                    emails=len(emails),
                    callbacks=story.callbacks,
                    found=story.found,
                    parked=story.parked,
                    seconds=elapsed(),
                ),
            )
        killed = stage.killer is not None and stage.killer.struck
        if isinstance(story, McpStory):
            return (
                tree,
                emails,
                summary_of_servers(
                    tree,
                    model=casting.model,
                    server=SERVER,
                    tools=story.tools,
                    notes=len(stage.pottery.written),
                    fenced=story.fenced,
                    emails=len(emails),
                    killed=killed,
                    seconds=elapsed(),
                ),
            )
        end = summary(
            tree,
            emails,
            model=casting.model,
            seconds_to_card=story.seconds_to_card,
            seconds=elapsed(),
            killed=killed,
        )
    return tree, emails, end


@asynccontextmanager
async def _database(home: Home, screen: Screen) -> AsyncIterator[str]:
    """The home's database, started and stopped in a thread, so that other things may start meanwhile."""
    database = home.database()
    with screen.working("starting Postgres"):
        starting = asyncio.ensure_future(asyncio.to_thread(database.__enter__))
        try:
            url = await asyncio.shield(starting)
        except asyncio.CancelledError:  # a start cannot be cut short; it is undone once it is done
            await starting
            await asyncio.to_thread(database.__exit__, None, None, None)
            raise
    try:
        yield url
    finally:
        await asyncio.to_thread(database.__exit__, None, None, None)


def _conclude(end: End, emails: Emails, tree: Tree, options: DemoOptions, screen: Screen) -> int:
    for email in emails:
        screen.email(email)
    if isinstance(end, Summary) and end.answered_from_key:
        screen.done("Attempt 2 was answered under the same key: accepted once, sent once")
    for call in tree["uncertain"]:
        place = "notebook" if isinstance(end, McpSummary) else "mailbox"
        screen.note(f"Whether {call['tool']} happened is not known. Look into the {place}, then settle it:")
        screen.note(f"  {command(options.folder)} uncertain list")
        screen.note(
            f'  {command(options.folder)} uncertain confirm {call["ref"]} --evidence "it is in the {place}"   (or deny)'
        )
    broken = _broken_promise(end, options)
    if broken is None:
        if end.rejected and isinstance(end, Summary) and end.emails_sent == 0:
            screen.done("You rejected it; no email was sent.")
        elif end.rejected:
            screen.done(f"You rejected it; {'no note was written' if options.mcp else 'nobody was looked up'}.")
        screen.done(f"Done in {end.seconds:.1f} s", f"run {end.run_id}")
        _print_line(options, end.line())
        return OK
    sentence = f"{broken}; '{command(options.folder)} runs show {end.run_id}' shows what happened"
    screen.problem(sentence)
    _print_line(options, end.line(sentence))
    return FAILED


def _broken_promise(end: End, options: DemoOptions) -> str | None:
    match end:
        case Summary():
            return broken_promise(end, options)
        case EnrichmentSummary():
            return broken_promise_of_jobs(end)
        case McpSummary():
            return broken_promise_of_servers(end, crash=options.crash_at is not None)
        case _ as never:
            assert_never(never)


def _failed(
    sentence: str, options: DemoOptions, screen: Screen, *, run_id: str | None = None, status: int = FAILED
) -> int:
    screen.problem(sentence)
    _print_line(options, error_line(sentence, run_id))
    return status


def _print_line(options: DemoOptions, line: str) -> None:
    if options.json:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _keep_to_one_database() -> None:
    """Leave a Supabase project alone that the environment names: the contacts stand where the runs do. Workers inherit this."""
    for name in (URL_VARIABLE, KEY_VARIABLE):
        os.environ.pop(name, None)


def _how_to_go_on(screen: Screen, approval_id: str, options: DemoOptions) -> None:
    agentic = command(options.folder)
    screen.title("Nothing was decided; the run waits in the database. To go on:")
    screen.note(f"{agentic} approvals approve {approval_id}   (or reject)")
    which = " --enrich" if options.enrich else " --mcp" if options.mcp else ""
    screen.note(f"{agentic} demo{which}   whose worker carries out what was decided")


def _goes_on(run_id: str) -> str:
    return f"run {run_id} goes on with the next demo"


def _end_in_order_on(number: signal.Signals) -> None:
    """Turn a signal into the cancellation that Ctrl-C is, so that everything is stopped."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def _say_who_plays(casting: Casting, screen: Screen) -> None:
    if casting.model == REHEARSAL:
        screen.note(
            f"{MODEL} is not set, so a rehearsal script plays the model. "
            f"Yours: {MODEL}=openai:gpt-5-mini, its key in the environment."
        )
    else:
        screen.note(f"The model is {casting.model}.")
