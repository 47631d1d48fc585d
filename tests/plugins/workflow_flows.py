"""Workflows made for one test: a body, its tools, and a function around them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import inngest
from pydantic import JsonValue

from agentic.bootstrap import App
from agentic.contract.principal import Principal
from agentic.contract.trust import Trust
from agentic.runtime.workflow import Workflow, WorkflowContext, Workflows
from agentic.runtime.workflow.flow import Flow
from agentic.runtime.workflow.identity import NodeCall, arguments_text
from agentic.services.connections.fixed import FixedConnections
from agentic.services.tools.declarations import Tool
from workflow_stage import Stage

Body = Callable[[WorkflowContext], Awaitable[JsonValue]]


def acts_for(event: inngest.Event) -> Principal:
    """As the test sent it."""
    return Principal(organization_id=UUID(str(event.data["organization_id"])), user_id=UUID(str(event.data["user_id"])))


def flow_app(
    body: Body, tools: Sequence[Tool], *, retries: int = 0, with_on_failure: bool = True, **declared: Any
) -> App:
    """An app with one function, ``flow``, started by an event of that name."""
    workflow = Workflow(name="flow", tools=tuple(tool.spec.name for tool in tools), acts_for=acts_for, **declared)

    def functions(client: inngest.Inngest, workflows: Workflows) -> list[inngest.Function[Any]]:
        @client.create_function(
            fn_id="flow",
            trigger=inngest.TriggerEvent(event="flow"),
            retries=retries,
            on_failure=workflows.on_failure(workflow) if with_on_failure else None,
        )
        async def flow(ctx: inngest.Context) -> JsonValue:
            return await workflows.run(ctx, workflow, body)

        return [flow]

    return App(tools=tools, functions=functions, connections=FixedConnections())


async def nothing(ctx: WorkflowContext) -> JsonValue:
    """For tests that call the nodes themselves."""
    return None


def flow_of(s: Stage, tools: Sequence[Tool], **declared: Any) -> Flow:
    """One run of the function, as its nodes know it."""
    workflow = Workflow(name="flow", tools=tuple(tool.spec.name for tool in tools), acts_for=acts_for, **declared)
    return Flow(
        principal=Principal(organization_id=s.organization_id, user_id=s.user_id),
        definition=workflow.definition,
        run_id="01JD0000000000000000000000",
        tools=workflow.tools,
        ceilings=workflow.ceilings,
        trust=workflow.trust,
        lane=workflow.lane,
        deadline_s=workflow.deadline_s,
    )


def node(name: str, tool: str, text: str = "hello", *, trust: Trust = Trust.EXTERNAL) -> NodeCall:
    """A call of one of the tools of ``core_world``."""
    return NodeCall(node=name, tool=tool, arguments_text=arguments_text({"text": text}), trust=trust)
