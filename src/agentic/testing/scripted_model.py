"""A model that plays a script, for an app that is to run without a provider of models."""

from collections.abc import Callable, Mapping, Sequence

from agentic.runtime.agent.script import Fail, Turn, Usage


def scripted(
    script: Sequence[Turn],
    *,
    reword: bool = False,
    failures: Mapping[int, Fail] | None = None,
    usage: Usage | None = None,
) -> Callable[[], object]:
    """A factory of such models, for ``models`` of an App.

    Args:
        script: the turns, in order; a request past its end fails, saying so.
        reword: word the rewordable arguments anew and renew the call ids whenever a turn is asked for again.
        failures: requests that fail, by their number from 0.
        usage: what every request reports.
    """

    def make() -> object:
        from agentic.runtime.agent.agno.scripted import ScriptedModel  # the framework is imported when a run needs it

        return ScriptedModel(script=script, reword=reword, failures=failures or {}, usage=usage or Usage())

    return make
