"""The tables of organizations that tools may reach, each with its columns.

What is not here cannot be reached through ``scoped_db``. ``organization_id`` stands in every one of them and in no list:
it is the database's to filter by and nobody's to name. A test compares this with what the migrations make.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Tables = Mapping[str, frozenset[str]]
"""Names of tables in schema ``public`` to the columns that may be named."""

ORG_SCOPED_TABLES: Final[Tables] = MappingProxyType(
    {
        "crm_companies": frozenset(
            {
                "id",
                "name",
                "name_key",
                "domain",
                "domain_key",
                "industry",
                "city",
                "country",
                "notes",
                "search_text",
                "created_at",
                "updated_at",
                "deleted_at",
                "live_domain_key",
                "live_name_key",
            }
        ),
        "crm_people": frozenset(
            {
                "id",
                "name",
                "name_key",
                "email",
                "email_key",
                "company_id",
                "job_title",
                "phone",
                "linkedin_url",
                "city",
                "country",
                "notes",
                "search_text",
                "created_at",
                "updated_at",
                "deleted_at",
                "live_email_key",
                "live_name_key",
            }
        ),
        "crm_lists": frozenset({"id", "name", "name_key", "created_at", "updated_at", "deleted_at", "live_name_key"}),
        "crm_list_members": frozenset({"list_id", "person_id", "added_at"}),
        "agent_memories": frozenset(
            {
                "id",
                "subject_kind",
                "subject_ref",
                "kind",
                "key",
                "text",
                "source",
                "trust",
                "created_at",
                "updated_at",
                "deleted_at",
                "live_key",
            }
        ),
    }
)
"""The tables that this package brings; a product adds its own with ``App(scoped_tables=…)``."""
