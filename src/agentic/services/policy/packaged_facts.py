"""The facts that come with the package, beside those an app declares."""

from collections.abc import Iterable

from agentic.services.policy.facts import AwaitableTexts, Fact, FactRegistry
from agentic.services.policy.recipients import WrittenTo, recipient_facts
from agentic.services.policy.url_seen import url_seen


def with_packaged(own: Iterable[Fact], *, words: AwaitableTexts, written_to: WrittenTo) -> FactRegistry:
    """The facts of a deployment. An app that knows its recipients better declares a fact of the same name, which then counts.

    Args:
        own: what the app declares.
        words: those of a run that were not the model's own.
        written_to: to whom an organization has written.

    Raises:
        ProgramFault: as ``FactRegistry``; also for an own ``url_seen``, which is not to be replaced.
    """
    declared = list(own)
    names = {fact.name for fact in declared}
    replaceable = [fact for fact in recipient_facts(written_to) if fact.name not in names]
    return FactRegistry([*declared, url_seen(words), *replaceable])
