"""What may be said of a company or a person: the one shape that tools and imports bring to the CRM.

Text is brought to its canonical form on the way in. A field that is blank says nothing, so nothing is overwritten with emptiness.
"""

from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from agentic.services.tools.handlers.crm.canonical import domain_of, email_of, fold, lines, one_line

MAX_NOTES_CHARS = 4000


def _named(text: str) -> str:
    line = one_line(text)
    if not fold(line):
        raise ValueError("a name has at least one letter or sign")
    return line


def _email(text: str) -> str | None:
    if not text.strip():
        return None
    email = email_of(text)
    if email is None:
        raise ValueError("this is no address such as per@fjord.example")
    return email


def _domain(text: str) -> str | None:
    if not text.strip():
        return None
    domain = domain_of(text)
    if domain is None:
        raise ValueError("this is no domain such as fjord.example")
    return domain


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_named)]
"""A name of a company or a person."""
ListName = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_named)]
Line = Annotated[str, Field(max_length=200), AfterValidator(lambda text: one_line(text) or None)]
"""Text on one line."""
Link = Annotated[str, Field(max_length=500), AfterValidator(lambda text: one_line(text) or None)]
Notes = Annotated[str, Field(max_length=MAX_NOTES_CHARS), AfterValidator(lambda text: lines(text) or None)]
Email = Annotated[str, Field(max_length=254), AfterValidator(_email)]
Domain = Annotated[str, Field(max_length=300), AfterValidator(_domain)]


class CompanyFacts(BaseModel):
    """A company. What is left out or blank stays as it is known."""

    name: Name
    domain: Domain | None = Field(default=None, description="Of its web site, such as fjord.example.")
    industry: Line | None = None
    city: Line | None = None
    country: Line | None = None
    notes: Notes | None = None


class PersonFacts(BaseModel):
    """A person. What is left out or blank stays as it is known."""

    name: Name
    email: Email | None = Field(default=None, description="Decides who it is; a name alone only within a company.")
    company_id: UUID | None = Field(default=None, description="Where they work: the id of a company of the CRM.")
    job_title: Line | None = None
    phone: Line | None = None
    linkedin_url: Link | None = None
    city: Line | None = None
    country: Line | None = None
    notes: Notes | None = None


def said(facts: BaseModel, *fields: str) -> dict[str, str]:
    """The fields that say something, as columns."""
    values = ((field, getattr(facts, field)) for field in fields)
    return {field: str(value) for field, value in values if value is not None}
