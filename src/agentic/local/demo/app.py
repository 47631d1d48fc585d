"""The demo's app, as its processes open it: the API's for the contracts, the workers' to run them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agentic.bootstrap import App
from agentic.local.crash_points import ArmedByFile, CrashPoint
from agentic.local.crash_points.dying import dying_model, dying_tool
from agentic.local.demo.agent import definition
from agentic.local.demo.email_tool import MAIL, email_tool
from agentic.local.demo.enrichment import agent as finder
from agentic.local.demo.mcp import agent as clerk
from agentic.local.demo.rehearsal import rehearsal
from agentic.local.demo.settings import REHEARSAL, DemoSettings, Target
from agentic.services.connections.fixed import FixedConnections
from agentic.services.provider_jobs.fullenrich import FullEnrich, FullEnrichAccount
from agentic.services.tools.handlers.crm import crm_tools


def demo_app(settings: DemoSettings) -> App:
    """The app. All stories are in it, so that each leads what another left behind."""
    jobs = FullEnrichAccount(
        key=settings.jobs.key, origin=settings.jobs.url, callback_origin=settings.jobs.callback_url
    )
    target = settings.target
    email = email_tool(settings.mail, vendor_key=settings.vendor_key, timeout_s=settings.email_timeout_s)
    models: dict[str, Callable[[], object]] = {
        finder.ENRICHMENT_REHEARSAL: lambda: finder.rehearsal(settings.people),
        clerk.POTTERY_REHEARSAL: clerk.rehearsal,
    }
    if target is not None:
        models[REHEARSAL] = lambda: rehearsal(target)
    if settings.crash is not None:
        armed = ArmedByFile(settings.crash.armed)
        email = dying_tool(email, settings.crash.point, armed)
        if settings.crash.point is CrashPoint.MODEL_STREAM:
            models[settings.model] = lambda: dying_model(_model(settings.model, target), armed)
    return App(
        tools=(email,),
        scoped_tools=(crm_tools,),
        agents=(
            *([definition(settings.model)] if target is not None else ()),
            finder.definition(settings.model),
            clerk.definition(settings.model),
        ),
        models=models,
        providers=(FullEnrich(jobs),),
        connections=FixedConnections({MAIL: settings.mail.key}),
    )


def _model(model: str, target: Target | None) -> object:
    from agentic.runtime.agent.agno.providers import resolve  # half a second that nobody else spends here

    return rehearsal(target) if model == REHEARSAL and target is not None else resolve(model, {})


@asynccontextmanager
async def worker_app() -> AsyncIterator[App]:
    """The app of a worker, from the environment it was started with."""
    yield demo_app(DemoSettings.from_environment())
