"""``agentic prices``: what one unit of a provider's service costs, from now on."""

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonArray, JsonObject

app = typer.Typer(name="prices", no_args_is_help=True, help="Lists and sets what usage costs, in US dollars.")
_MAX_CHARS = 200
_UNITS = {"token", "tokens", "input_tokens", "output_tokens", "cached_tokens"}
"""What people write when they mean a unit of a model."""


@app.command("list")
def list_prices(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """List the prices that count now for the organization. Its own win over everybody's, an exact item over '*'."""
    from agentic.api.usage_views import price_list_view
    from agentic.cli.records import with_records
    from agentic.cli.usage_listings import price_table
    from agentic.local.program import command

    folder = settings_of(context).folder

    async def read(records: "Records") -> "JsonArray":
        return price_list_view(await records.usage.prices(records.organization_id))

    found = with_records(folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(price_table(found))
    else:
        say(f"there are no prices; '{command(folder)} prices set PROVIDER ITEM UNIT AMOUNT' sets one")


@app.command("set")
def set_price(
    context: typer.Context,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="As 'agentic usage' names it, such as OpenAI.")],
    item: Annotated[
        str, typer.Argument(metavar="ITEM", help="A tool's name or a model's id; '*' is any of the provider.")
    ],
    unit: Annotated[
        str,
        typer.Argument(
            metavar="UNIT", help="What the tool reports; of models input_token, cached_token or output_token."
        ),
    ],
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="US dollars for one unit, such as 0.25 or 2.5e-7.")],
    all_organizations: Annotated[
        bool, typer.Option("--all-organizations", help="A price for every organization of the database.")
    ] = False,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Set a price. It counts from now on; lines that are written keep the cost they have."""
    from agentic.api.usage_views import price_view
    from agentic.cli.records import acting, with_records

    names = {"PROVIDER": provider, "ITEM": item, "UNIT": unit}
    for name, text in names.items():
        if not text.strip() or len(text) > _MAX_CHARS or not text.isprintable():
            raise typer.BadParameter(f"{name} has 1 to {_MAX_CHARS} printable characters")
    unit_price = amount_of(amount, "AMOUNT")
    folder = settings_of(context).folder

    async def act(records: "Records") -> "JsonObject":
        price = await records.usage.set_price(
            organization_id=None if all_organizations else records.organization_id,
            provider=provider.strip(),
            item=item.strip(),
            unit=unit.strip(),
            unit_price=unit_price,
            user_id=None if all_organizations else acting(folder, person),
        )
        return price_view(price)

    saved = with_records(folder, organization, act)
    if as_json:
        show_json(saved)
    else:
        whose = "every organization" if all_organizations else f"organization {saved['organization_id']}"
        say(f"one {unit.strip()} of {item.strip()} at {provider.strip()} costs {saved['unit_price']} USD for {whose}")
    if unit.strip() in _UNITS:
        say(
            "note: models are counted in input_token, cached_token and output_token; this price counts for none of them"
        )


def amount_of(text: str, name: str) -> Decimal:
    """The amount of an argument or option."""
    from agentic.services.usage.amounts import read_amount

    try:
        return read_amount(text)
    except ValueError as error:
        raise typer.BadParameter(f"{name}: {error}") from error
