"""What a new run is shown: the agent's tools, less those that four filters leave out."""

from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.services.tools.live import LiveTools, ReleaseState
from agentic.services.tools.maximum import MaximumClass
from agentic.services.tools.models import Risk, SideEffects
from agentic.services.tools.registry import RuntimeEnvironment, build_registry

HERE, ELSEWHERE = uuid4(), uuid4()


class Words(BaseModel):
    text: str


def tool(name: str, **declared: object) -> Tool:
    async def handler(ctx: CallContext, args: Words) -> list[str]:
        return []

    return internal_tool(name, "Does.", **declared)(handler)


READ = tool("crm.find")
WRITE = tool("crm.save", side_effects="write", repeatable=False)
SEND = tool("mail.send", side_effects="send", repeatable=False, connection="mail", may_repeat_because="a test")
RISKY = tool("vault.open", risk="high")
AFAR = tool("browser.open", target="browser_provider", output_trust="external")
ALL = [READ, WRITE, SEND, RISKY, AFAR]


@dataclass(frozen=True)
class Agent:
    tools: tuple[str, ...] = tuple(one.spec.name for one in ALL)


@dataclass(frozen=True)
class States:
    """Live state of one organization; elsewhere everything is live."""

    live_here: LiveTools

    async def live(self, organization_id: UUID) -> LiveTools:
        return self.live_here if organization_id == HERE else LiveTools()


PERSON = Principal(organization_id=HERE)
OFF = States(
    LiveTools(
        off=frozenset({"crm.find"}),
        releases={("mail.send", 1): ReleaseState.DEPRECATED, ("crm.save", 2): ReleaseState.REVOKED},
    )
)


async def test_without_a_filter_an_agent_has_what_this_deployment_can_run_in_its_own_order() -> None:
    registry = build_registry(ALL)
    specs = await registry.specs_for_session(Agent(("vault.open", "crm.find", "vault.open", "browser.open")), PERSON)
    assert [spec.name for spec in specs] == ["vault.open", "crm.find"]


async def test_a_place_that_exists_shows_its_tools() -> None:
    somewhere = RuntimeEnvironment(targets=frozenset({"browser_provider"}))
    specs = await build_registry(ALL).specs_for_session(Agent(), PERSON, environment=somewhere)
    assert [spec.name for spec in specs] == ["browser.open"]


async def test_a_principal_narrows_and_never_widens() -> None:
    scoped = Principal(organization_id=HERE, scopes=("crm.save", "nothing.at_all"))
    specs = await build_registry(ALL).specs_for_session(Agent(("crm.find", "crm.save")), scoped)
    assert [spec.name for spec in specs] == ["crm.save"]


@pytest.mark.parametrize(
    ("maximum", "shown"),
    [
        (MaximumClass(), ["crm.find", "crm.save", "mail.send", "vault.open"]),
        (MaximumClass(side_effects=SideEffects.NONE), []),
        (MaximumClass(side_effects=SideEffects.READ), ["crm.find", "vault.open"]),
        (MaximumClass(side_effects=SideEffects.WRITE), ["crm.find", "crm.save", "vault.open"]),
        (MaximumClass(risk=Risk.LOW), ["crm.find"]),
        (MaximumClass(side_effects=SideEffects.WRITE, risk=Risk.MEDIUM), ["crm.find", "crm.save"]),
    ],
)
async def test_a_maximum_class_leaves_out_what_is_beyond_it(maximum: MaximumClass, shown: list[str]) -> None:
    specs = await build_registry(ALL).specs_for_session(Agent(), PERSON, maximum=maximum)
    assert [spec.name for spec in specs] == shown


async def test_what_is_switched_off_deprecated_or_revoked_is_offered_to_no_new_run_there() -> None:
    registry = build_registry(ALL, states=OFF)
    here = await registry.specs_for_session(Agent(), PERSON)
    assert [spec.name for spec in here] == ["crm.save", "vault.open"], (
        "another version of crm.save is revoked, not this one"
    )
    assert {spec.name for spec in await registry.list_for_organization(HERE)} == {
        "crm.save",
        "vault.open",
        "browser.open",
    }
    assert len(await registry.list_for_organization(ELSEWHERE)) == len(ALL)


async def test_a_name_that_no_tool_has_is_a_fault_and_not_left_out() -> None:
    with pytest.raises(ProgramFault, match=r"no tool is registered under x\.y, z\.z"):
        await build_registry(ALL).specs_for_session(Agent(("x.y", "crm.find", "z.z")), PERSON)
