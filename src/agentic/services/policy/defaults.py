"""The rules the package comes with. A rule of the same name replaces one, a disabled one switches it off.

They are written so that the usual piece of work, research, notes in the CRM, one email, asks a person once: for the email.
"""

from typing import Final
from uuid import NAMESPACE_URL, uuid5

from agentic.services.policy.rules import Rule, RuleDraft, RuleEffect, RuleOrigin
from agentic.services.tools.models import Risk, SideEffects


def _packaged(version: int, draft: RuleDraft) -> Rule:
    return Rule(
        **draft.model_dump(),
        id=uuid5(NAMESPACE_URL, f"agentic:policy:{draft.name}"),
        version=version,
        origin=RuleOrigin.PACKAGED,
    )


PACKAGED_RULES: Final = (
    _packaged(
        1,
        RuleDraft(
            name="crm-bookkeeping",
            effect=RuleEffect.ALLOW,
            tool="crm.*",
            side_effects=frozenset({SideEffects.WRITE}),
            risk=frozenset({Risk.LOW, Risk.MEDIUM}),
            covers_external=True,  # research is external content; asking for each note teaches people to click
            reason="notes and lists of the CRM stay inside the organization and can be corrected",
        ),
    ),
    _packaged(
        1,
        RuleDraft(
            name="open-egress",
            effect=RuleEffect.REQUIRE_APPROVAL,
            side_effects=frozenset({SideEffects.READ}),
            egress="open",
            condition="!facts.url_seen",
            reason="it fetches an address that nobody but the model wrote, and the address itself can carry data out",
        ),
    ),
)
"""In the order of their names; the version of one rises with every change of it."""
