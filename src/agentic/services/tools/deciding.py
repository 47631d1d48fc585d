"""Step 6 of a call: what the policy says of it, and the question that goes to a person when it says "ask".

Nobody is asked about a call that cannot be done: which account it acts in is known first, and the question names it (ADR 0042).
"""

from collections.abc import Callable
from functools import partial

from pydantic import BaseModel

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.canonical import canonical
from agentic.contract.errors import ApprovalRequired
from agentic.contract.results import ErrorCode
from agentic.services.tools.attempt import Attempt, Prepared, Refused
from agentic.services.tools.connecting import connect
from agentic.services.tools.connections import ConnectionPort
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.judging import own_approval
from agentic.services.tools.ports import Decision, FactFinder, PolicyPort, PolicyQuestion, Preflight
from agentic.services.tools.previewing import preview_line
from agentic.services.tools.redaction import redact, redact_text
from agentic.services.tools.tracing import step_span


class Deciding:
    """Asks the policy, and words the question to a person.

    Args:
        policy: the action checkpoint.
        facts: what previews may ask about their call.
        connections: where the account of a call that must ask comes from.
        context: what facts and previews see of a call.
    """

    def __init__(
        self,
        *,
        policy: PolicyPort,
        facts: FactFinder,
        connections: ConnectionPort,
        context: Callable[[Prepared], CallContext],
    ) -> None:
        self._policy = policy
        self._facts = facts
        self._connections = connections
        self._context = context

    async def decide(self, call: Prepared, pre: Preflight, tool: Tool, model: BaseModel) -> Decision:
        """The decision under which the call may run.

        Raises:
            Refused: the policy denies it, or it would have to ask and there is no account to do it in.
            ApprovalRequired: a person must decide first.
        """
        at, answer = call.at, await self._answer(call, pre, model)
        if answer.effect == "deny":
            raise Refused(ErrorCode.DENIED)
        if answer.effect == "allow":
            return answer
        if answer.four_eyes and own_approval(pre.approval, at.inv):
            at.approval = None  # a rule since then asks for somebody else
        if at.approval is None:
            raise ApprovalRequired(await self._question(call, pre, tool, model, answer))
        at.decision = Decision(
            effect="allow",
            rule_id=answer.rule_id,
            rule_version=answer.rule_version,
            reason="a person approved this call",
        )
        return at.decision

    async def _answer(self, call: Prepared, pre: Preflight, model: BaseModel) -> Decision:
        at, ctx = call.at, self._context(call)
        with step_span("policy.evaluate") as span:
            answer = await self._policy.decide(
                PolicyQuestion(
                    spec=call.spec,
                    arguments=call.arguments,
                    granted=pre.granted,
                    member=pre.member,
                    context_trust=pre.context_trust.lowered_by(at.inv.context_trust),
                    environment=at.inv.environment,
                    now=pre.now,
                    run_kind=pre.run_kind,
                    rules_version=pre.rules_version,
                    argument_trust=at.call.label,
                    context=ctx,
                    model=model,
                )
            )
            span.set_attributes({"policy.effect": answer.effect, "policy.rule": answer.rule_id})
        at.used(ctx.secrets)  # a fact may have been looked up with a credential
        at.decision = answer
        return answer

    async def _question(
        self, call: Prepared, pre: Preflight, tool: Tool, model: BaseModel, answer: Decision
    ) -> ApprovalRequest:
        """The question. One that is open already stays as it was shown, its account with it."""
        at = call.at
        pending = pre.approval if pre.approval is not None and pre.approval.status == "pending" else None
        shown = None
        if pending is None:
            await connect(call, self._connections)
            shown = await self._preview(call, tool, model)
        return ApprovalRequest(
            organization_id=at.inv.organization_id,
            run_id=at.inv.run_id,
            tool=call.spec.name,
            contract_hash=call.spec.contract_hash,
            digest=call.digest,
            arguments_text=canonical(redact(call.arguments, at.secrets)).decode(),
            shown=shown,
            rule_id=answer.rule_id,
            rule_version=answer.rule_version,
            reason=answer.reason,
            four_eyes=answer.four_eyes,
            connection_id=None if at.connection is None else at.connection.id,
            account=_named(at),
            approval_id=pending.id if pending is not None else None,
            span_id=at.span_id,
        )

    async def _preview(self, call: Prepared, tool: Tool, model: BaseModel) -> str | None:
        ctx = self._context(call)
        ctx.account = None if ctx.account is None else ctx.account.without_credential()
        ctx.facts = partial(self._facts, ctx=ctx, args=model)
        shown = await preview_line(tool, ctx, model)
        call.at.used(ctx.secrets)
        return shown


def _named(at: Attempt) -> str | None:
    return None if at.connection is None else redact_text(at.connection.name, at.secrets)
