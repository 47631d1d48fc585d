"""What is decided before anything starts: whom the story is about, who plays the model, whose function server it is."""

import os
from dataclasses import dataclass

from agentic.local.demo import crm
from agentic.local.demo.agent import pick_target
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.settings import REHEARSAL, Target
from agentic.local.function_server import NamedServer, named_server, require_reachable

MODEL = "AGENTIC_MODEL"


@dataclass(frozen=True, kw_only=True, slots=True)
class Casting:
    """The decisions.

    Attributes:
        model: the model string, or the rehearsal's name.
        report: the contacts, read.
        target: whom the story is about.
        named: the person's own function server, if the environment names one.
    """

    model: str
    report: crm.ImportReport
    target: Target
    named: NamedServer | None


def cast(options: DemoOptions) -> Casting:
    """Decide, and find out what cannot work.

    Raises:
        CsvProblem: the contacts cannot be read.
        NobodyToWrite: none of them has an email.
        FunctionServerAway: the environment names a function server that does not answer.
        ProgramFault: the model cannot be made; says what is missing.
    """
    file = options.csv or crm.SAMPLE
    report = crm.load_contacts(file)
    target = pick_target(report, file.name)
    named = named_server()
    if named is not None:
        require_reachable(named)
    return Casting(model=_model(), report=report, target=target, named=named)


def _model() -> str:
    model = os.environ.get(MODEL, "").strip() or REHEARSAL
    if model != REHEARSAL:
        from agentic.runtime.agent.agno.runtime import AgnoLoop  # half a second that a rehearsal spends elsewhere

        AgnoLoop().check_model(model)
    return model
