"""Usage, prices and limits as JSON, the same for the API and ``agentic … --json``. Pure; imports no web framework."""

from collections.abc import Iterable

from agentic.api.views import plain
from agentic.contract.json_types import JsonArray, JsonObject, JsonValue
from agentic.services.tools.metering import Price
from agentic.services.usage.models import DayUsage, RunUsage
from agentic.services.usage.rollup import DaySum


def run_usage_view(usage: RunUsage) -> JsonObject:
    """What a run used."""
    return _object(usage.model_dump())


def day_usage_view(usage: DayUsage) -> JsonObject:
    """What an organization used in a day."""
    return _object({**usage.model_dump(), "day": usage.day.isoformat()})


def day_sum_view(one: DaySum) -> JsonObject:
    """The sum of one thing in one day."""
    return _object({**one.model_dump(), "day": one.day.isoformat()})


def price_view(price: Price) -> JsonObject:
    """One price."""
    return _object(
        {
            "id": price.id,
            "organization_id": price.organization_id,
            "provider": price.provider,
            "item": price.item,
            "unit": price.unit,
            "unit_price": price.unit_price,
            "valid_from": price.valid_from,
        }
    )


def price_list_view(prices: Iterable[Price]) -> JsonArray:
    """Prices as a listing shows them."""
    return [price_view(price) for price in prices]


def _object(value: object) -> JsonObject:
    shown: JsonValue = plain(value)
    assert isinstance(shown, dict)
    return shown
