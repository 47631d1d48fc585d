"""A worker's settings travel through its environment unchanged."""

import pytest

from agentic.contract.errors import ProgramFault
from agentic.local.worker.settings import VARIABLE, WorkerSettings
from agentic.runtime.agent.timings import Timings


def test_settings_come_back_from_the_environment_as_they_were() -> None:
    settings = WorkerSettings(app_id="shop", timings=Timings(lease_s=3, renew_s=1), claim_grace_s=1, drain_s=2)
    assert WorkerSettings.from_environment({VARIABLE: settings.model_dump_json()}) == settings


def test_without_any_the_defaults_of_production_hold() -> None:
    assert WorkerSettings.from_environment({}) == WorkerSettings()
    assert WorkerSettings().timings.lease_s == 60


@pytest.mark.parametrize("text", ["", "{", '{"claim_grace_s": -1}', '{"no_such": 1}'])
def test_something_else_in_the_variable_is_said(text: str) -> None:
    with pytest.raises(ProgramFault, match=VARIABLE):
        WorkerSettings.from_environment({VARIABLE: text})
