"""What a look at a server finds is written down, then told: once for each catalog that was not known before."""

from agentic.services.mcp.catalog import Catalog
from agentic.services.mcp.ports import Sightings
from agentic.services.mcp.records import Observation, StoredServer
from agentic.services.mcp.server_events import Teller


async def observe(store: Sightings, server: StoredServer, catalog: Catalog, *, resources: bool) -> Observation:
    """Write down what a server offers now, whoever looked, and tell what is new of it.

    Args:
        server: as it was dialled.
        catalog: as it was read.
        resources: whether the server offers resources.

    Raises:
        NotFound: there is no such server.
        Conflict: it is retired, or its endpoint or authentication is another by now.
    """
    seen = await store.observe(
        server.organization_id,
        server.server_id,
        catalog,
        resources=resources,
        endpoint_revision=server.endpoint_revision,
    )
    teller = Teller(organization_id=server.organization_id, server_id=server.server_id)
    if seen.previous_hash != catalog.catalog_hash:
        teller.catalog_changed(old_hash=seen.previous_hash, new_hash=catalog.catalog_hash)
    if seen.new_generation:
        for conflict in catalog.conflicts:
            teller.catalog_conflict(conflict)
        teller.tools_rejected(catalog.rejected)
    return seen
