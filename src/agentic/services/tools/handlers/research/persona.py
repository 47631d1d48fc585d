"""Whom to look for, as bounded words of ours, and what each vendor makes of it. Pure."""

from enum import StrEnum

from pydantic import BaseModel, Field


class Seniority(StrEnum):
    """How far up."""

    JUNIOR = "junior"
    SENIOR = "senior"
    EXECUTIVE = "executive"


class Function(StrEnum):
    """In which part of a company."""

    EXECUTIVE = "executive"
    IT = "it"
    FINANCE = "finance"
    MANAGEMENT = "management"
    SALES = "sales"
    LEGAL = "legal"
    SUPPORT = "support"
    HR = "hr"
    MARKETING = "marketing"
    COMMUNICATION = "communication"


class Persona(BaseModel):
    """A buyer in words; every one may be left out."""

    title: str | None = Field(default=None, min_length=1, max_length=120, description="Such as 'Head of Platform'.")
    title_family: str | None = Field(default=None, min_length=1, max_length=120, description="Such as 'platform'.")
    seniority: Seniority | None = None
    function: Function | None = None
    location: str | None = Field(default=None, min_length=1, max_length=120, description="A city, region or country.")


def as_sentence(persona: Persona, company: str) -> str:
    """The persona as a search in natural language."""
    who = [
        persona.title,
        f"in {persona.title_family} roles" if persona.title_family else None,
        f"of {persona.seniority} seniority" if persona.seniority else None,
        f"in {persona.function}" if persona.function else None,
    ]
    words = " ".join(each for each in who if each) or "people"
    return f"{words} at {company}" + (f", {persona.location}" if persona.location else "")


def as_filters(persona: Persona) -> dict[str, str]:
    """The part of the persona that Hunter filters by; titles and places it does not take."""
    filters = {"seniority": persona.seniority, "department": persona.function}
    return {name: str(value) for name, value in filters.items() if value is not None}
