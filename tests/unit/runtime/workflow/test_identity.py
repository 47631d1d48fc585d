"""Names become rows the same way everywhere, and arguments one text."""

from uuid import UUID

import inngest
import pytest
from pydantic import BaseModel

from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal
from agentic.runtime.workflow import Workflow
from agentic.runtime.workflow.declaration import checked_node
from agentic.runtime.workflow.identity import MAX_ARGUMENT_BYTES, arguments_text, container_id, node_id


def nobody(event: inngest.Event) -> Principal:
    """Of no organization in particular."""
    return Principal(organization_id=UUID(int=1))


def test_a_replay_in_another_release_finds_the_rows_of_the_first() -> None:
    container = container_id(UUID(int=1), "workflow:leads", "01JD0000000000000000000000")
    assert str(container) == "c5403953-e342-5b51-9936-f7dcc7dfee3b"
    assert str(node_id(container, "email")) == "377cf61e-22a3-583e-a0e5-195ca39c5c32"


@pytest.mark.guarantee("T1")
def test_two_organizations_share_no_row_whatever_the_function_servers_ids_are() -> None:
    ids = {container_id(UUID(int=n), "workflow:leads", "r") for n in range(3)}
    assert len(ids) == 3


def test_arguments_are_one_text_however_they_are_ordered_or_built() -> None:
    class Words(BaseModel):
        text: str
        at: int

    assert arguments_text({"text": "ü", "at": 1}) == arguments_text(Words(at=1, text="ü")) == '{"at":1,"text":"ü"}'


@pytest.mark.parametrize("arguments", [{"at": object()}, {"rate": float("nan")}, {"text": "x" * MAX_ARGUMENT_BYTES}])
def test_what_is_no_json_or_too_large_is_a_fault_of_the_program(arguments: dict[str, object]) -> None:
    with pytest.raises(ProgramFault):
        arguments_text(arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "Leads", "1leads", "a b", "a" * 64])
def test_a_workflows_name_has_a_grammar(name: str) -> None:
    with pytest.raises(ProgramFault):
        Workflow(name=name, tools=(), acts_for=nobody)


@pytest.mark.parametrize("node", ["", "a/b", "-a", "a b", "a" * 101])
def test_a_nodes_id_has_a_grammar_that_steps_of_its_own_never_meet(node: str) -> None:
    with pytest.raises(ProgramFault):
        checked_node(node)
