"""A run that goes on from stored messages sends what agno's own continue would send."""

from typing import Any

import pytest
from agno.agent import Agent
from agno.run.agent import RunOutput
from agno_dialects import ALL, GEMINI, RESPONSES, Dialect
from agno_stage import INSTRUCTIONS, SEARCH, TOOLS, StagedRun, result_of
from agno_wire import Reply, WireCall, provider

from agentic.runtime.agent.agno.adapter import GovernedFunction, paused_function
from agentic.runtime.agent.ports import ProposedCall, TurnCompleted
from agentic.services.tools.models import model_tool_name
from agentic.services.tools.schemas import provider_schema

SCRIPT = (
    Reply(
        text="Let me look.",
        calls=(
            WireCall(id="a1", name="crm_search", arguments='{"q": "Ada"}'),
            WireCall(id="a2", name="crm_upsert", arguments='{"q": "None"}'),
        ),
    ),
    Reply(calls=(WireCall(id="b1", name="email_send", arguments='{"q": "hello"}'),)),
    Reply(text="Done."),
)
MODES = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
DIALECTS = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)


async def _reference(dialect: Dialect, stream: bool) -> list[dict[str, Any]]:
    """The bodies agno sends when one process keeps the run object and continues it."""

    async def read(**arguments: Any) -> str:
        return '{"tool":"crm.search","asked":{"q": "Ada"}}'

    functions = []
    for tool in TOOLS:
        name, schema = model_tool_name(tool.spec.name), provider_schema(tool.spec.input_schema)
        if tool is SEARCH:
            functions.append(
                GovernedFunction(
                    name=name,
                    description=tool.spec.description,
                    parameters=schema,
                    strict=False,
                    entrypoint=read,
                    skip_entrypoint_processing=True,
                )
            )
        else:
            functions.append(paused_function(name, tool.spec.description, schema))
    texts = {"a2": '{"tool":"crm.upsert","asked":{"q": "None"}}', "b1": '{"tool":"email.send","asked":{"q": "hello"}}'}
    with provider(SCRIPT, dialect.encode(stream)) as endpoint:
        model = dialect.model(endpoint.base_url)
        if dialect is RESPONSES:
            model.store = False  # type: ignore[attr-defined]
        agent = Agent(
            model=model,
            tools=list(functions),
            system_message=INSTRUCTIONS,
            resolve_in_context=False,
            telemetry=False,
            name="staged",
        )

        async def drive(run: Any) -> RunOutput:
            if not stream:
                output = await run
                assert isinstance(output, RunOutput)
                return output
            last: RunOutput | None = None
            async for event in run:
                if isinstance(event, RunOutput):
                    last = event
            assert last is not None
            return last

        options: dict[str, Any] = {"stream": True, "stream_events": True, "yield_run_output": True} if stream else {}
        out = await drive(agent.arun("Write to {Ada}", **options))
        answers = iter(texts.values())
        while out.active_requirements:
            for requirement in out.active_requirements:
                requirement.set_external_execution_result(next(answers))
            out = await drive(agent.acontinue_run(run_response=out, **options))
        if dialect is GEMINI:
            await model.get_client().aio.aclose()  # type: ignore[attr-defined]
        else:
            await model.get_async_client().close()  # type: ignore[attr-defined]
        return endpoint.bodies


@DIALECTS
@MODES
async def test_each_segment_sends_the_body_that_agno_continuing_in_one_process_would_send(
    dialect: Dialect, stream: bool
) -> None:
    with provider(SCRIPT, dialect.encode(stream)) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url), stream=stream)
        end = await run.to_end()
        bodies = endpoint.bodies
    assert isinstance(end, TurnCompleted)
    assert (end.text, end.cut_off) == ("Done.", False)
    assert len(bodies) == 3
    assert bodies == await _reference(dialect, stream)


@DIALECTS
async def test_results_stand_behind_their_calls_in_call_order_however_they_were_appended(dialect: Dialect) -> None:
    calls = tuple(WireCall(id=f"call_{i:024d}", name="crm_upsert", arguments=f'{{"q": "{i}"}}') for i in range(3))
    with provider([Reply(calls=calls), Reply(text="ok")], dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))
        await run.turn()
        drained = run.drain(backwards=True)
        await run.turn()
        results = dialect.results(endpoint.bodies[1])
    assert [text for _, text in results] == [result_of(call) for call in drained]
    if dialect is GEMINI:  # it has no ids: position and name are the only link
        assert [name for name, _ in results] == ["crm_upsert"] * 3
    else:
        assert [call_id for call_id, _ in results] == [f"call_{i:024d}" for i in range(3)]


@DIALECTS
@pytest.mark.guarantee("J8")
async def test_a_run_that_died_inside_its_read_goes_on_from_the_stored_answer(dialect: Dialect) -> None:
    class Died(BaseException):
        """The process is gone."""

    with provider(SCRIPT, dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))

        async def die(call: ProposedCall) -> Any:
            raise Died

        run.hooks.read = die  # type: ignore[method-assign]
        with pytest.raises(Died):
            await run.turn()
        run.hooks.read = type(run.hooks).read.__get__(run.hooks)  # type: ignore[method-assign]
        assert [call.tool for call in run.drain()] == ["crm.search", "crm.upsert"]
        end = await run.to_end()
        bodies = endpoint.bodies
    assert isinstance(end, TurnCompleted)
    assert bodies == await _reference(dialect, stream=True)
