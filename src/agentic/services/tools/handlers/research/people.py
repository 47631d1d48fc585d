"""From Exa's person to ours: what somebody does now, of a history that may be missing. Pure."""

from agentic.services.tools.handlers.research.exa import Properties, Result, Work


def name_of(result: Result) -> str | None:
    """The person's name; the page's title when Exa knows only the page."""
    person = result.person
    return (person.name if person is not None else None) or result.title


def current_work(person: Properties | None) -> Work | None:
    """What the person does now: the first line of the history without an end, else the first."""
    history = (person.workHistory if person is not None else None) or []
    now = [each for each in history if each.dates is None or each.dates.to is None]
    return next(iter(now or history), None)


def company_of(work: Work | None) -> str | None:
    """Where that is."""
    return work.company.name if work is not None and work.company is not None else None
