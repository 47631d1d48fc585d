"""Tools as the database knows them. The statements stand in ``queries/catalogue.sql``."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal
from uuid import UUID

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.services.tools.contracts import read_contract, readable
from agentic.services.tools.domains import belongs_to_organization
from agentic.services.tools.live import InFlight, LiveTools, Release, ReleaseState
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.targets import executable
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb
from agentic.storage.queries import load_queries

_CHANGES = 20


class PostgresCatalogueStore:
    """Publishes contracts, and reads and changes live state. Implements ``LiveStates``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("catalogue")

    async def publish(self, specs: Iterable[ToolSpec]) -> None:
        """Store contracts of this deployment, each once."""
        contracts = [
            {
                "contract_hash": spec.contract_hash,
                "name": spec.name,
                "version": spec.version,
                "spec": spec.contract_text(),
            }
            for spec in specs
        ]
        await self._db.count(self._sql["publish"], {"contracts": jsonb(contracts)})

    async def live(self, organization_id: UUID) -> LiveTools:
        """What of an organization's tools is switched off, deprecated or revoked now."""
        rows = await self._db.all(self._sql["live"], {"organization_id": organization_id})
        return LiveTools(
            off=frozenset(row["tool"] for row in rows if row["version"] is None),
            releases={
                (row["tool"], row["version"]): ReleaseState(row["state"]) for row in rows if row["version"] is not None
            },
        )

    async def tools(self, organization_id: UUID) -> list[dict[str, Any]]:
        """The newest contract of each tool with its live state, by name."""
        rows = await self._db.all(self._sql["list"], {"organization_id": organization_id, "tool": None})
        return [_tool(row, _spec(row)) for row in rows]

    async def tool(self, organization_id: UUID, name: str) -> dict[str, Any]:
        """Everything about one tool: its newest contract whole, every version of it, its live state, and its last changes.

        Raises:
            NotFound: the database knows no such tool.
        """
        params = {"organization_id": organization_id, "tool": name, "limit": _CHANGES}
        row = await self._db.one(self._sql["list"], params)
        if row is None:
            raise _unknown(name)
        spec = _spec(row)
        return {
            **spec.model_dump(mode="json"),
            **_tool(row, spec),
            "versions": [dict(one) for one in await self._db.all(self._sql["versions"], params)],
            "changes": [dict(one) for one in await self._db.all(self._sql["changes"], params)],
        }

    async def set_enabled(
        self, organization_id: UUID, tool: str, *, enabled: bool, user_id: UUID | None = None
    ) -> bool:
        """Enable or disable a tool in an organization; ``False`` when it is so already. Counts at the next call (D2).

        Args:
            user_id: the authenticated person, kept with the change; ``None`` for whoever administers the database itself.

        Raises:
            NotFound: the database knows no such tool.
            NotPermitted: the person is no admin of the organization.
        """
        params = {"organization_id": organization_id, "tool": tool, "enabled": enabled, "user_id": user_id}
        row = await self._db.one(self._sql["set_state"], params)
        return _changed(row, tool)

    async def release(
        self,
        organization_id: UUID,
        tool: str,
        version: int,
        *,
        state: Literal[ReleaseState.DEPRECATED, ReleaseState.REVOKED],
        in_flight: InFlight | None = None,
        user_id: UUID | None = None,
    ) -> Release:
        """Move a version of a tool on in its life. A tool written as code moves in every organization at once.

        Args:
            organization_id: whose the tool is, when it arrived at run time.
            in_flight: of a revocation, and only of one: what becomes of runs that have the version.
            user_id: who does it, kept with the change; must be admin where the tool belongs to one organization.

        Raises:
            NotFound: the database knows no such version.
            NotPermitted: the person is no admin of the organization.
            Conflict: it is further on already; nothing goes back, a new version does.
        """
        assert (state is ReleaseState.REVOKED) == (in_flight is not None)
        owner = organization_id if belongs_to_organization(tool) else None
        params = {
            "owner": owner,
            "tool": tool,
            "version": version,
            "state": str(state),
            "in_flight": None if in_flight is None else str(in_flight),
            "user_id": user_id,
        }
        changed = _changed(await self._db.one(self._sql["release"], params), tool, version)
        now = await self._db.one(self._sql["release_now"], params)
        assert now is not None
        if (now["state"], now["in_flight"]) != (params["state"], params["in_flight"]):
            rule = f" ({now['in_flight']})" if now["in_flight"] else ""
            raise Conflict(
                f"{tool} version {version} is {now['state']}{rule}, which is not taken back; release a new version"
            )
        return Release(tool=tool, version=version, state=state, in_flight=in_flight, changed=changed)

    async def grants(self, organization_id: UUID, *, definition: str | None = None) -> list[dict[str, Any]]:
        """Which definition has which tool, or had it, by name; of one definition, or of all that ever began here."""
        params = {"organization_id": organization_id, "definition": definition}
        return await self._db.all(self._sql["grants"], params)

    async def set_grant(
        self, organization_id: UUID, definition: str, tool: str, *, active: bool, user_id: UUID | None = None
    ) -> bool:
        """Take a tool from a definition, or give it back; ``False`` when it is so already.

        Counts at the next call, also of a run that waits (D2).

        Args:
            definition: an agent's name, or a workflow's as ``workflow:NAME``.
            user_id: the authenticated person, kept with the change; ``None`` for whoever administers the database itself.

        Raises:
            NotFound: the definition never had the tool in this organization. Its first run there gives it what it names.
            NotPermitted: the person is no admin of the organization.
        """
        params = {
            "organization_id": organization_id,
            "definition": definition,
            "tool": tool,
            "user_id": user_id,
            "state": "active" if active else "revoked",
        }
        row = await self._db.one(self._sql["set_grant"], params)
        assert row is not None
        _check_permitted(row)
        if not row["known"]:
            raise NotFound(
                f"{definition!r} never had the tool {tool!r} in this organization; 'agentic grants list' shows who has what"
            )
        return bool(row["changed"])


def _spec(row: Mapping[str, Any]) -> ToolSpec:
    return read_contract(contract_hash=row["contract_hash"], name=row["name"], version=row["version"], text=row["spec"])


def _tool(row: Mapping[str, Any], spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "version": spec.version,
        "description": spec.description,
        "side_effects": str(spec.side_effects),
        "idempotency": str(spec.idempotency),
        "risk": str(spec.risk),
        "mode": str(spec.mode),
        "vendor_key_ttl_s": spec.vendor_key_ttl_s,
        "contract_hash": row["contract_hash"],
        "enabled": row["enabled"] and row["withdrawn_at"] is None,
        "withdrawn_at": row["withdrawn_at"],
        "release": row["release"],
        "in_flight": row["in_flight"],
        "readable": readable(spec),
        "executable": executable(spec),
    }


def _changed(row: Mapping[str, Any] | None, tool: str, version: int | None = None) -> bool:
    assert row is not None
    _check_permitted(row)
    if not row["known"]:
        raise _unknown(tool, version)
    return bool(row["changed"])


def _check_permitted(row: Mapping[str, Any]) -> None:
    if not row["permitted"]:
        raise NotPermitted("changing tools takes the role admin in their organization; ask an admin to do it")


def _unknown(tool: str, version: int | None = None) -> NotFound:
    which = repr(tool) if version is None else f"{tool!r} of version {version}"
    return NotFound(f"there is no tool {which}; 'agentic tools list' shows those there are")
