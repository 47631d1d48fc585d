"""Tables of organizations over Supabase's interface (PostgREST), with the service's key.

The key passes row level security, so the organization is a condition of every request, and a column of every row that is written.
A request is sent once: whether a write that got no answer is sent again is for whoever knows the call.
"""

import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar, assert_never
from uuid import UUID

import httpx
from postgrest import APIError, AsyncPostgrestClient, AsyncQueryRequestBuilder
from postgrest.base_request_builder import BaseFilterRequestBuilder

from agentic.contract.errors import AgenticError, ProgramFault, StorageUnavailable
from agentic.services.tools.scoped_queries import (
    Contains,
    Delete,
    Eq,
    Filter,
    Gt,
    Gte,
    In,
    Insert,
    IsNull,
    Lt,
    Lte,
    NotNull,
    Query,
    Row,
    Select,
    Update,
    Upsert,
)
from agentic.storage.scoped_refusals import refusal
from agentic.storage.supabase_address import project_url

TIMEOUT_S: Final = 20.0
CONNECT_TIMEOUT_S: Final = 5.0
_CONSTRAINT: Final = re.compile(r'constraint "([^"]+)"')
_NO_DATABASE: Final = frozenset({"PGRST000", "PGRST001", "PGRST002", "PGRST003"})
_ORGANIZATION: Final = "organization_id"

Narrowed = TypeVar("Narrowed", bound=BaseFilterRequestBuilder[httpx.AsyncClient])


class SupabaseRows:
    """Implements ``ScopedRows``. Made once a process, closed with it.

    Args:
        url: of the project, such as ``https://abc.supabase.example``; plain ``http`` for loopback alone.
        key: the service's key.
        transport: for tests.

    Raises:
        ProgramFault: the URL is not one a key may be sent to.
    """

    def __init__(self, *, url: str, key: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
            trust_env=False,
            transport=transport,
            event_hooks={"response": [_check_it_is_answered]},
        )
        self._client = AsyncPostgrestClient(
            f"{project_url(url, of='Supabase')}/rest/v1",
            headers={"apikey": key, "Authorization": f"Bearer {key}"},
            http_client=self._http,
            retry_enabled=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, organization_id: UUID, query: Query) -> list[Row]:
        """Run it; raises as the port says."""
        request = self._request(str(organization_id), query)
        try:
            answer = await request.execute()
        except httpx.TransportError as error:
            raise StorageUnavailable(f"Supabase gave no answer ({type(error).__name__})") from None
        except APIError as error:
            raise _refused(query.table, error) from error
        rows: Any = answer.data
        if not isinstance(rows, list):
            raise StorageUnavailable("what answers in Supabase's place does not speak its language")
        return rows

    def _request(self, organization: str, query: Query) -> AsyncQueryRequestBuilder:
        table = self._client.from_(query.table)
        match query:
            case Select():
                reading = table.select(*query.columns).limit(query.limit).offset(query.offset)
                for by in query.order:
                    reading = reading.order(by.column, desc=by.descending)
                return _narrowed(reading, organization, query.where)
            case Insert():
                rows = [{**row, _ORGANIZATION: organization} for row in query.rows]
                return table.insert(rows).select(*query.returning)
            case Upsert():
                rows = [{**row, _ORGANIZATION: organization} for row in query.rows]
                return table.upsert(
                    rows,
                    on_conflict=",".join([_ORGANIZATION, *query.on]),
                    ignore_duplicates=query.existing == "keep",
                ).select(*query.returning)
            case Update():
                update = table.update(dict(query.values))
                return _narrowed(update, organization, query.where).select(*query.returning)
            case Delete():
                return _narrowed(table.delete(), organization, query.where).select(*query.returning)
            case _:
                assert_never(query)


def _narrowed(request: Narrowed, organization: str, where: Sequence[Filter]) -> Narrowed:
    request = request.eq(_ORGANIZATION, organization)
    for condition in where:
        request = request.filter(condition.column, *_condition(condition))
    return request


def _condition(condition: Filter) -> tuple[str, str]:
    """Operator and value; the value of a single comparison is taken as it is, that of a list needs quotes."""
    match condition:
        case Eq():
            return "eq", str(condition.value)
        case Lt():
            return "lt", str(condition.value)
        case Lte():
            return "lte", str(condition.value)
        case Gt():
            return "gt", str(condition.value)
        case Gte():
            return "gte", str(condition.value)
        case IsNull():
            return "is", "null"
        case NotNull():
            return "not.is", "null"
        case In():
            return "in", f"({','.join(_quoted(str(value)) for value in condition.values)})"
        case Contains():
            # not ilike: there a * is a wildcard that nothing escapes
            return "imatch", f"***={condition.text}"
        case _:
            assert_never(condition)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


async def _check_it_is_answered(response: httpx.Response) -> None:
    """A gateway that is busy or finds nobody behind it answers in the form of errors too; its status alone tells it apart."""
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        raise StorageUnavailable("Supabase takes no more requests just now (status 429)")
    if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
        await response.aread()
        try:
            code = response.json().get("code")
        except (ValueError, AttributeError):
            code = None
        if not isinstance(code, str):
            raise StorageUnavailable(f"Supabase is not there just now (status {response.status_code})")


def _refused(table: str, error: APIError) -> AgenticError:
    code, message = error.code or "", error.message or ""
    if code in _NO_DATABASE:
        return StorageUnavailable(f"Supabase does not reach its database just now ({code})")
    if code.startswith("PGRST3"):
        return ProgramFault(f"Supabase takes the key for none of its own ({code}); see SUPABASE_SERVICE_ROLE_KEY")
    found = _CONSTRAINT.search(message)
    return refusal(table, sqlstate=code or None, constraint=found[1] if found else None, message=message)
