"""``agentic demo``: what can go wrong is found first, then the stage is set, the story told, and everything stopped again."""

import asyncio
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentic.contract.errors import AgenticError
from agentic.local.demo.agent import pick_target
from agentic.local.demo.asking import can_ask
from agentic.local.demo.crm import SAMPLE, load_contacts
from agentic.local.demo.functions_server import named_server, require_reachable
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.rehearsal import REHEARSAL, rehearsal
from agentic.local.demo.screen import Screen
from agentic.local.demo.settings import Target
from agentic.local.demo.stage import Casting, set_stage
from agentic.local.demo.story import LeftWaiting, Story
from agentic.local.demo.summary import Summary, broken_promise, summary
from agentic.local.home import DEFAULT_FOLDER, Home
from agentic.runtime.agent.agno.runtime import AgnoLoop

MODEL = "AGENTIC_MODEL"
OK, FAILED, CANNOT_ASK, INTERRUPTED = 0, 1, 2, 130
ShowTree = Callable[[Mapping[str, Any]], None]


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
        screen.problem(
            "the demo asks before the email is sent, and there is no terminal to ask in; add --yes to answer yes"
        )
        return CANNOT_ASK
    try:
        return _demo(options, screen, show_tree, elapsed=lambda: time.monotonic() - began)
    except AgenticError as error:
        screen.problem(str(error))
        return FAILED
    except KeyboardInterrupt:
        screen.note("Stopped.")
        return INTERRUPTED


def _demo(options: DemoOptions, screen: Screen, show_tree: ShowTree | None, *, elapsed: Callable[[], float]) -> int:
    casting = _cast(options)
    if casting.model == REHEARSAL:
        screen.note(
            f"{MODEL} is not set, so a rehearsal script plays the model. Yours: {MODEL}=openai:gpt-5-mini, its key in the environment."
        )
    _keep_loopback_off_proxies()
    home = Home(options.folder)
    with screen.working("starting Postgres"):
        database = home.database()
        url = database.__enter__()
    try:
        return asyncio.run(_tell(url, home, options, casting, screen, show_tree, elapsed))
    finally:
        with screen.working("stopping Postgres"):
            database.__exit__(None, None, None)


def _cast(options: DemoOptions) -> Casting:
    file = options.csv or SAMPLE
    report = load_contacts(file)
    target = pick_target(report, file.name)
    named = named_server()
    if named is not None:
        require_reachable(named)
    model = _model(target)
    return Casting(model=model, report=report, target=target, named=named)


def _model(target: Target) -> str:
    model = os.environ.get(MODEL, "").strip() or REHEARSAL
    AgnoLoop({REHEARSAL: lambda: rehearsal(target)}).check_model(model)
    return model


async def _tell(
    url: str,
    home: Home,
    options: DemoOptions,
    casting: Casting,
    screen: Screen,
    show_tree: ShowTree | None,
    elapsed: Callable[[], float],
) -> int:
    _end_in_order_on(signal.SIGTERM)
    async with set_stage(url, home, options, casting, screen) as stage:
        story = Story(stage, options, screen, casting.target, elapsed)
        try:
            tree = await story.tell()
        except (LeftWaiting, asyncio.CancelledError) as left:
            if story.waits_for is not None:
                _how_to_go_on(screen, story, options)
            if isinstance(left, LeftWaiting):
                return FAILED
            raise
        emails = await stage.emails(story.run_id) if story.run_id is not None else []
        end = summary(tree, emails, model=casting.model, seconds_to_card=story.seconds_to_card, seconds=elapsed())
    if show_tree is not None:
        show_tree(tree)
    return _conclude(end, emails, tree, options, screen)


def _conclude(
    end: Summary, emails: Sequence[Mapping[str, Any]], tree: Mapping[str, Any], options: DemoOptions, screen: Screen
) -> int:
    for email in emails:
        screen.email(email)
    if end.answered_from_key:
        screen.done("Attempt 2 was answered under the same key: accepted once, sent once")
    for call in tree["uncertain"]:
        screen.note(f"Whether {call['tool']} happened is not known. Look into the mailbox, then settle it:")
        screen.note(f"  {_command(options)} uncertain list")
        screen.note(f'  {_command(options)} uncertain confirm {call["ref"]} --evidence "it is in Sent"   (or deny)')
    broken = broken_promise(end, options)
    if broken is None:
        screen.done(f"Done in {end.seconds:.1f} s", f"run {end.run_id}")
    else:
        screen.problem(f"{broken}; '{_command(options)} runs show {end.run_id}' shows what happened")
    if options.json:
        sys.stdout.write(end.line() + "\n")
        sys.stdout.flush()
    return OK if broken is None else FAILED


def _how_to_go_on(screen: Screen, story: Story, options: DemoOptions) -> None:
    agentic = _command(options)
    screen.note(f"Nothing was decided; run {story.run_id} waits in the database. To go on:")
    screen.note(f"  {agentic} approvals approve {story.waits_for}   (or reject)")
    screen.note(f"  {agentic} demo   its worker carries out what was decided")


def _command(options: DemoOptions) -> str:
    """The command line's name, with the folder where it is not the usual one."""
    return "agentic" if options.folder == DEFAULT_FOLDER else f"agentic --folder {shlex.quote(str(options.folder))}"


def _end_in_order_on(number: signal.Signals) -> None:
    """Turn a signal into the cancellation that Ctrl-C is, so that everything is stopped."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def _keep_loopback_off_proxies() -> None:
    """The SDK asks the environment for a proxy, also for addresses of this machine."""
    for name in ("NO_PROXY", "no_proxy"):
        listed = os.environ.get(name, "")
        os.environ[name] = ",".join(part for part in (listed, "127.0.0.1", "localhost") if part)
