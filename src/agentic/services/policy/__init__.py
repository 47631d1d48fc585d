"""What may happen: stage 1 the live grant, stage 2 the rules. Pure; the invoker acts on the answer."""

from agentic.services.policy.matrix import BuiltInPolicy, decide

__all__ = ["BuiltInPolicy", "decide"]
