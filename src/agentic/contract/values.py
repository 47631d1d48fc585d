"""The one base of the contract's values: frozen, keyword-only, no unknown fields."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)
