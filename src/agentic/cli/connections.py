"""``agentic connections``: the accounts that calls act in. Secrets come over standard input and are never printed (docs/connections.md)."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeVar
from uuid import UUID

import typer

from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonObject
    from agentic.services.connections.models import StoredConnection
    from agentic.services.connections.probing import Probed
    from agentic.services.connections.secrets import Secret
    from agentic.services.connections.service import Checked, ConnectionService, Rotated, TokenEndpoint

T = TypeVar("T")
_TAKES_NO_SECRET = {"allow_extra_args": True}  # the parser's own refusal would print what may be one
_MAX_INPUT_CHARS = 64 * 1024
app = typer.Typer(
    name="connections", no_args_is_help=True, help="Connects accounts, and says whether calls may use them."
)
Connection = Annotated[UUID, typer.Argument(metavar="CONNECTION", help="The connection's id.")]
SecretStdin = Annotated[bool, typer.Option("--secret-stdin", help="The API key is the first line of standard input.")]
OAuthClient = Annotated[
    str | None,
    typer.Option(
        "--oauth-client",
        metavar="ID",
        help="An OAuth client; its secret is the first line of standard input, empty for a client that has none.",
    ),
]
RefreshToken = Annotated[
    bool, typer.Option("--refresh-token", help="A person's consent: its refresh token is the second line.")
]


@app.command(context_settings=_TAKES_NO_SECRET)
def add(
    context: typer.Context,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="Provider key, as tools declare it.")],
    label: Annotated[str | None, typer.Option(help="What people call it; the provider's key by default.")] = None,
    account: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A fact of the account that may be shown. Repeatable."),
    ] = None,
    secret_stdin: SecretStdin = False,
    header: Annotated[
        str | None, typer.Option(help="The header that carries the API key; 'Authorization: Bearer' by default.")
    ] = None,
    oauth_client: OAuthClient = None,
    refresh_token: RefreshToken = False,
    token_endpoint: Annotated[str | None, typer.Option(metavar="URL", help="Where the client gets tokens.")] = None,
    client_auth: Annotated[Literal["basic", "post"], typer.Option(help="How the client names itself there.")] = "basic",
    scope: Annotated[list[str] | None, typer.Option(help="A scope to ask for. Repeatable.")] = None,
    resource: Annotated[str | None, typer.Option(metavar="URI", help="What the tokens are for (RFC 8707).")] = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Connect an account. Its vendor is not asked; the first call that uses it is."""
    from agentic.cli.connection_views import connection_view
    from agentic.cli.records import acting, with_records

    _one_way(context, secret_stdin, oauth_client)
    if (oauth_client is None) != (token_endpoint is None):
        raise typer.BadParameter("--oauth-client and --token-endpoint go together")
    if header is not None and oauth_client is not None:
        raise typer.BadParameter("--header is for an API key; a token goes into 'Authorization: Bearer'")
    facts = _facts(account or [])
    endpoint = _endpoint(token_endpoint, client_auth, resource, scope or [])
    folder = settings_of(context).folder
    secret = _secret(oauth_client, refresh_token)

    async def act(records: "Records") -> "tuple[JsonObject, int]":
        service = _service(records)
        made = await service.add(
            records.organization_id,
            provider,
            secret,
            label=label or provider,
            account=facts,
            header=header,
            endpoint=endpoint,
            created_by=acting(folder, person),
        )
        return connection_view(made), _usable_beside(made, await service.list(records.organization_id))

    made, others = _told(lambda: with_records(folder, organization, act))
    if as_json:
        show_json(made)
    else:
        say(f"{provider} is connected as '{made['label']}', {made['id']}")
    if others:
        say(
            f"{provider} has {others + 1} connections now: a call says which one it means by its connection_id, or is refused"
        )


@app.command("list")
def list_connections(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """List the connections of an organization, the newest first."""
    from agentic.cli.connection_views import connection_table, connection_view
    from agentic.cli.records import with_records
    from agentic.storage.connection_store import PostgresConnectionStore

    async def read(records: "Records") -> "tuple[list[JsonObject], UUID]":
        found = await PostgresConnectionStore(records.database).list(records.organization_id)
        return [connection_view(one) for one in found], records.organization_id

    found, where = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(connection_table(found))
    else:
        say(f"organization {where} has no connections")


@app.command()
def check(
    context: typer.Context,
    connection: Connection,
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Ask the vendor too, by a question that costs nothing, where it documents one."),
    ] = False,
    organization: Organization = None,
    as_json: Json = False,
) -> None:
    """Say whether a call could use a connection: its state, its expiry, and whether its secret opens. Exits 1 when not."""
    from dataclasses import asdict

    from agentic.cli.connection_views import connection_view
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "tuple[Checked, Probed | None]":
        found = await _service(records).check(records.organization_id, connection)
        return found, await _probed(records, found) if probe and found.usable else None

    found, probed = with_records(settings_of(context).folder, organization, read)
    if as_json:
        view = connection_view(found.connection)
        asked = {"probe": None if probed is None else asdict(probed)} if probe else {}
        show_json({**view, "opens": found.opens, "usable": found.usable, "note": found.note, **asked})
    else:
        say(
            f"{connection} {'may be used' if found.usable else 'may not be used'}{f': {found.note}' if found.note else ''}"
        )
        if probed is not None:
            say(f"{f'asked {probed.asked}: ' if probed.asked else 'nobody was asked: '}{probed.said}")
    if not found.usable or (probed is not None and probed.accepted is False):
        raise typer.Exit(1)


@app.command(context_settings=_TAKES_NO_SECRET)
def reconnect(
    context: typer.Context,
    connection: Connection,
    secret_stdin: SecretStdin = False,
    oauth_client: OAuthClient = None,
    refresh_token: RefreshToken = False,
    organization: Organization = None,
    as_json: Json = False,
) -> None:
    """Give a connection a new secret. It stays the same account's, and is connected again."""
    from agentic.cli.connection_views import connection_view
    from agentic.cli.records import with_records

    _one_way(context, secret_stdin, oauth_client)
    secret = _secret(oauth_client, refresh_token)

    async def act(records: "Records") -> "JsonObject":
        return connection_view(await _service(records).reconnect(records.organization_id, connection, secret))

    made = _told(lambda: with_records(settings_of(context).folder, organization, act))
    if as_json:
        show_json(made)
    else:
        say(f"{connection} is connected")


@app.command()
def revoke(
    context: typer.Context, connection: Connection, organization: Organization = None, as_json: Json = False
) -> None:
    """Disconnect an account for good, and forget its secret. At the vendor's, the credential goes on to work."""
    from agentic.cli.connection_views import connection_view
    from agentic.cli.records import with_records

    async def act(records: "Records") -> "JsonObject":
        return connection_view(await _service(records, locked=True).revoke(records.organization_id, connection))

    ended = with_records(settings_of(context).folder, organization, act)
    if as_json:
        show_json(ended)
    else:
        say(f"{connection} is revoked, and its secret forgotten")


@app.command()
def rotate(context: typer.Context, as_json: Json = False) -> None:
    """Put every secret of the database under the first key of AGENTIC_VAULT_KEYS. Exits 1 when one does not open."""
    from agentic.cli.records import with_records

    async def act(records: "Records") -> "Rotated":
        return await _service(records).rotate()

    done = with_records(settings_of(context).folder, None, act)
    unreadable = [str(one) for one in done.unreadable]
    if as_json:
        show_json({"key_id": done.key_id, "rewrapped": done.rewrapped, "unreadable": unreadable})
    else:
        say(f"{done.rewrapped} put under the key {done.key_id}")
        for one in unreadable:
            say(f"{one} does not open with any key here, and stays as it is")
    if unreadable:
        raise typer.Exit(1)


def _service(records: "Records", *, locked: bool = False) -> "ConnectionService":
    """The service; ``locked`` for what needs no key, and has to work where the keys are lost."""
    from agentic.services.connections.envelope import VaultKeys
    from agentic.services.connections.service import ConnectionService
    from agentic.storage.connection_store import PostgresConnectionStore

    keys = VaultKeys([]) if locked else VaultKeys.from_environment()
    return ConnectionService(store=PostgresConnectionStore(records.database), keys=keys)


def _usable_beside(made: "StoredConnection", every: "Sequence[StoredConnection]") -> int:
    """How many others of its provider a call may mean."""
    from agentic.services.connections.models import ConnectionState

    of_provider = [one for one in every if one.binding.provider == made.binding.provider and one.id != made.id]
    return sum(one.state is not ConnectionState.REVOKED for one in of_provider)


async def _probed(records: "Records", found: "Checked") -> "Probed":
    from agentic.contract.clock import SystemClock
    from agentic.services.connections.envelope import VaultKeys
    from agentic.services.connections.probing import Probed, probe
    from agentic.services.connections.vault import Vault
    from agentic.services.provider_jobs.fullenrich.account import fullenrich_origin
    from agentic.services.tools.connections import Unconnected
    from agentic.services.tools.handlers.email import NYLAS, nylas_origin
    from agentic.services.tools.handlers.research import ResearchOrigins
    from agentic.storage.connection_store import PostgresConnectionStore

    clock, row, research = SystemClock(), found.connection, ResearchOrigins.from_environment()
    origins = {
        NYLAS: nylas_origin(),
        "hunter": research.hunter,
        "firecrawl": research.firecrawl,
        "fullenrich": fullenrich_origin(),
    }
    store = PostgresConnectionStore(records.database)
    vault = Vault(store=store, keys=VaultKeys.from_environment(), clock=clock)
    try:
        account = await vault.resolve(
            organization_id=row.organization_id, provider=row.binding.provider, connection_id=row.id
        )
        if isinstance(account, Unconnected):
            return Probed(asked=None, accepted=None, said=f"the connection changed meanwhile ({account.code})")
        return await probe(account, origins=origins, clock=clock)
    finally:
        await vault.aclose()


def _told(act: "Callable[[], T]") -> "T":
    """The answer, or a mistake in what was given as one of the arguments."""
    try:
        return act()
    except ValueError as mistake:
        raise typer.BadParameter(str(mistake)) from None


def _one_way(context: typer.Context, secret_stdin: bool, oauth_client: str | None) -> None:
    if context.args:
        raise typer.BadParameter(
            "there is an argument too many; a secret comes over standard input, and one that was typed here is in the shell's history"
        )
    if secret_stdin == (oauth_client is not None):
        raise typer.BadParameter("say --secret-stdin for an API key, or --oauth-client for an OAuth client")


def _facts(given: "list[str]") -> dict[str, str]:
    facts = dict(fact.partition("=")[::2] for fact in given if "=" in fact)
    if len(facts) != len(given) or not all(facts):
        raise typer.BadParameter("--account takes NAME=VALUE, each name once")
    return facts


def _endpoint(
    url: str | None, client_auth: Literal["basic", "post"], resource: str | None, scopes: "list[str]"
) -> "TokenEndpoint | None":
    from agentic.services.connections.models import ClientAuth
    from agentic.services.connections.service import TokenEndpoint

    if url is None:
        return None
    return TokenEndpoint(url=url, client_auth=ClientAuth(client_auth), resource=resource, scopes=tuple(scopes))


def _secret(oauth_client: str | None, refresh_token: bool) -> "Secret":
    """What standard input brings, a line each; a person at a terminal types it unseen."""
    from agentic.services.connections.secrets import ApiKey, OAuthSecret

    if oauth_client is None:
        return ApiKey(value=_typed("the API key")[0])
    if not refresh_token:
        [client_secret] = _typed("the client's secret", hint="; a refresh token is read with --refresh-token")
        return OAuthSecret(client_id=oauth_client, client_secret=client_secret or None)
    client_secret, token = _typed("the client's secret", "the refresh token")
    return OAuthSecret(client_id=oauth_client, client_secret=client_secret or None, refresh_token=token)


def _typed(*what: str, hint: str = "") -> list[str]:
    """A line of standard input for each, and not one more: a line that was left out or forgotten would be another secret."""
    import getpass
    import sys

    takes = f"standard input takes {' and, on the next line, '.join(what)}"
    if sys.stdin.isatty():
        lines = [getpass.getpass(f"{each[0].upper()}{each[1:]}: ", stream=sys.stderr).strip() for each in what]
    else:
        text = sys.stdin.read(_MAX_INPUT_CHARS + 1)
        lines = [line.strip() for line in text.rstrip().split("\n")]
        if len(lines) > len(what) or len(text) > _MAX_INPUT_CHARS:
            raise typer.BadParameter(f"{takes}, and nothing else{hint}")
    if not any(lines):
        raise typer.BadParameter(f"{takes}; it brought nothing")
    return lines + [""] * (len(what) - len(lines))
