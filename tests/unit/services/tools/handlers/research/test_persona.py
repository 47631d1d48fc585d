"""A persona in bounded words, and what each vendor is asked."""

from agentic.services.tools.handlers.research.persona import Function, Persona, Seniority, as_filters, as_sentence


def test_a_persona_without_words_asks_for_people_at_the_company() -> None:
    assert as_sentence(Persona(), "Nordlys") == "people at Nordlys"
    assert as_filters(Persona()) == {}


def test_every_word_of_a_persona_is_in_the_sentence() -> None:
    persona = Persona(
        title="Head of Platform",
        title_family="platform",
        seniority=Seniority.EXECUTIVE,
        function=Function.IT,
        location="Bergen",
    )
    assert (
        as_sentence(persona, "Nordlys")
        == "Head of Platform in platform roles of executive seniority in it at Nordlys, Bergen"
    )
    assert as_filters(persona) == {"seniority": "executive", "department": "it"}
