"""A model provider on this machine, in OpenAI's HTTP shape (chat completions and responses), that answers from a script.

Point a model's ``base_url`` at it. What a real provider does only now and then is ordered here: cut streams, refusals, silence,
answers at their limit, characters split between two packets.
"""

from agentic.local.providers.model.app import model_app
from agentic.local.providers.model.script import (
    Answer,
    Hold,
    ModelCall,
    ModelScript,
    Refusal,
    Reply,
    Request,
    Usage,
    Wire,
)
from agentic.local.providers.model.server import ModelServer

__all__ = [
    "Answer",
    "Hold",
    "ModelCall",
    "ModelScript",
    "ModelServer",
    "Refusal",
    "Reply",
    "Request",
    "Usage",
    "Wire",
    "model_app",
]
