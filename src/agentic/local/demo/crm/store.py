"""The CRM's tables: what the demo's tools read and write, each statement within one organization (T1).

Every write may be repeated with the same arguments and then changes nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from psycopg.rows import class_row

from agentic.contract.errors import NotFound
from agentic.local.demo.crm.contacts import Contact, fold, group_companies
from agentic.local.demo.crm.csv_import import ImportReport
from agentic.storage.pool import Connection, Pool

MAX_RESULTS = 100
_SCHEMA = Path(__file__).with_name("schema.sql")
_COLUMNS = (
    """p.id, p.name, p.email, p.job_title, c.name as company, c.domain as company_domain, p.city, p.country, p.notes"""
)
_JOIN = (
    "demo_crm.people p left join demo_crm.companies c on c.organization_id = p.organization_id and c.id = p.company_id"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """One person as the tools see them. ``notes`` is text from outside."""

    id: UUID
    name: str
    email: str | None
    job_title: str | None
    company: str | None
    company_domain: str | None
    city: str | None
    country: str | None
    notes: str | None


async def ensure_schema(pool: Pool) -> None:
    """Make the tables where they are missing; several processes may do so at once."""
    async with pool.connection() as connection, connection.transaction():
        await connection.execute("select pg_advisory_xact_lock(hashtextextended('demo_crm.schema', 0))")
        await connection.execute(_SCHEMA.read_bytes())


async def replace_contacts(pool: Pool, organization_id: UUID, report: ImportReport) -> None:
    """Put the export in place of all people and companies the organization has, whole or not at all. Empties its lists."""
    async with pool.connection() as connection, connection.transaction():
        await _lock(connection, organization_id)
        for table in ("lists", "people", "companies"):
            await connection.execute(f"delete from demo_crm.{table} where organization_id = %s", (organization_id,))
        companies, memberships = group_companies(report.contacts)
        ids = [uuid4() for _ in companies]
        async with connection.cursor() as cursor:
            await cursor.executemany(
                "insert into demo_crm.companies (organization_id, id, name, name_key, domain) values (%s, %s, %s, %s, %s)",
                [
                    (organization_id, id, company.name, fold(company.name), company.domain)
                    for company, id in zip(companies, ids, strict=True)
                ],
            )
            await cursor.executemany(
                """
                insert into demo_crm.people
                    (organization_id, position, name, email, company_id, job_title, phone, city, country, notes, search_text)
                values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
                """,
                [
                    (
                        organization_id,
                        position,
                        contact.name,
                        contact.email,
                        None if company is None else ids[company],
                        contact.job_title,
                        contact.phone,
                        contact.city,
                        contact.country,
                        contact.notes,
                        _search_text(contact),
                    )
                    for position, (contact, company) in enumerate(zip(report.contacts, memberships, strict=True))
                ],
            )


async def search_people(pool: Pool, organization_id: UUID, query: str, limit: int = 20) -> list[Person]:
    """People in whose name, email, title, company or place every word of ``query`` occurs, in the export's order.

    Args:
        query: words, whatever their case and accents; none finds everybody.
        limit: 1 to 100.

    Raises:
        ValueError: the limit is out of range.
    """
    if not 1 <= limit <= MAX_RESULTS:
        raise ValueError(f"limit must be 1 to {MAX_RESULTS}")
    words = fold(query).split()
    async with pool.connection() as connection, connection.cursor(row_factory=class_row(Person)) as cursor:
        # position(), not like: a % or _ in the query is a character, not a wildcard
        await cursor.execute(
            f"""
            select {_COLUMNS} from {_JOIN}
            where p.organization_id = %s
              and not exists (select from unnest(%s::text[]) word where position(word in p.search_text) = 0)
            order by p.position, p.id
            limit %s
            """,
            (organization_id, words, limit),
        )
        return await cursor.fetchall()


async def upsert_company(
    pool: Pool,
    organization_id: UUID,
    name: str,
    domain: str | None = None,
    *,
    industry: str | None = None,
    city: str | None = None,
    country: str | None = None,
) -> tuple[UUID, bool]:
    """Find or make a company and set what is given.

    A given domain decides which one it is; a company of that name whose domain was not known gets it. Without a domain
    the name decides, the oldest of several first.

    Args:
        name: not blank; kept as first written when the company exists.
        domain: such as ``fjord.example``.

    Returns:
        Its id, and whether it is new.

    Raises:
        ValueError: the name is blank.
    """
    key = fold(name)
    if not key:
        raise ValueError("a company needs a name")
    site = domain.strip().lower() if domain and domain.strip() else None
    async with pool.connection() as connection, connection.transaction():
        await _lock(connection, organization_id)
        cursor = await connection.execute(
            """
            select id from demo_crm.companies
            where organization_id = %(organization)s
              and (domain = %(domain)s or (name_key = %(key)s and (domain is null or %(domain)s::text is null)))
            order by (domain = %(domain)s) desc nulls last, created_at, id
            limit 1
            """,
            {"organization": organization_id, "domain": site, "key": key},
        )
        found = await cursor.fetchone()
        values = (site, industry, city, country, organization_id)
        if found is not None:
            await connection.execute(
                """
                update demo_crm.companies
                set domain = coalesce(%s, domain), industry = coalesce(%s, industry), city = coalesce(%s, city),
                    country = coalesce(%s, country)
                where organization_id = %s and id = %s
                """,
                (*values, found["id"]),
            )
            return found["id"], False
        new_id = uuid4()
        await connection.execute(
            """
            insert into demo_crm.companies (domain, industry, city, country, organization_id, id, name, name_key)
            values (%s, %s, %s, %s, %s, %s, %s, %s)
            """,
            (*values, new_id, " ".join(name.split()), key),
        )
        return new_id, True


async def add_to_list(pool: Pool, organization_id: UUID, list_name: str, person_id: UUID) -> bool:
    """Put a person on a list, which is made when it does not exist; names differing in case alone are one list.

    Returns:
        ``False`` when the person was on it already.

    Raises:
        NotFound: this organization has no such person.
        ValueError: the list's name is blank.
    """
    key = fold(list_name)
    if not key:
        raise ValueError("a list needs a name")
    async with pool.connection() as connection, connection.transaction():
        await _lock(connection, organization_id)
        person = await connection.execute(
            "select from demo_crm.people where organization_id = %s and id = %s", (organization_id, person_id)
        )
        if person.rowcount == 0:
            raise NotFound(f"there is no person {person_id}; search for people and use an id that comes back")
        await connection.execute(
            "insert into demo_crm.lists (organization_id, name_key, name) values (%s, %s, %s) on conflict do nothing",
            (organization_id, key, " ".join(list_name.split())),
        )
        added = await connection.execute(
            "insert into demo_crm.list_members (organization_id, list_key, person_id) values (%s, %s, %s) on conflict do nothing",
            (organization_id, key, person_id),
        )
        return added.rowcount == 1


async def list_people(pool: Pool, organization_id: UUID, list_name: str) -> list[Person]:
    """Who is on a list, in the order they came; empty for a list nobody made."""
    async with pool.connection() as connection, connection.cursor(row_factory=class_row(Person)) as cursor:
        await cursor.execute(
            f"""
            select {_COLUMNS} from demo_crm.list_members m
            join demo_crm.people p on p.organization_id = m.organization_id and p.id = m.person_id
            left join demo_crm.companies c on c.organization_id = p.organization_id and c.id = p.company_id
            where m.organization_id = %s and m.list_key = %s
            order by m.added_at, p.id
            """,
            (organization_id, fold(list_name)),
        )
        return await cursor.fetchall()


async def _lock(connection: Connection, organization_id: UUID) -> None:
    """One writer per organization until the transaction ends: what identifies a company spans two columns."""
    await connection.execute(
        "select pg_advisory_xact_lock(hashtextextended('demo_crm.' || %s::text, 0))", (organization_id,)
    )


def _search_text(contact: Contact) -> str:
    parts = (
        contact.name,
        contact.email,
        contact.job_title,
        contact.company,
        contact.domain,
        contact.city,
        contact.country,
    )
    return fold(" ".join(part for part in parts if part))
