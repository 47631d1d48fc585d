-- The operator's side of the journal: outcomes nobody knows, and claims nobody will propose again.

-- name: list_uncertain
-- Calls of an organization whose outcome is unknown, each under the reference that commands take.
select organization_id, run_id, scope, key, tool, epoch, attempt, arguments_text, uncertain_at, uncertain_reason, effect_sent_at, proposal_id,
    left(encode(sha256(convert_to(scope, 'UTF8') || '\x00'::bytea || convert_to(key, 'UTF8')), 'hex'), 16) as ref
from agent.idempotency_keys
where organization_id = %(organization_id)s and state = 'uncertain' and (%(run_id)s::uuid is null or run_id = %(run_id)s)
order by uncertain_at

-- name: settled
-- How an outcome of this reference was settled last, and by whom.
select kind, actor, at from agent.effects
where organization_id = %(organization_id)s and kind in ('confirmed', 'denied')
  and left(encode(sha256(convert_to(scope, 'UTF8') || '\x00'::bytea || convert_to(key, 'UTF8')), 'hex'), 16) = %(ref)s
order by at desc
limit 1

-- name: written_to
-- Which of these addresses an email of the organization has gone to, by what the journal completed. The mark is of the organization and
-- the address together: a condition on the organization beside it would have the planner walk all that the organization ever did.
select a.address from unnest(%(addresses)s::text[]) a (address)
where exists (
    select from agent.idempotency_keys k
    where k.tool = 'email.send' and k.state = 'completed' and k.outcome_status = 'ok'
      and agent.recipients_of(k.organization_id, k.arguments_text) @> array[agent.recipient_mark(%(organization_id)s, a.address)]
)

-- name: confirm
-- It happened: the call is completed with what the operator saw. One decision, one line in the record. What was held for a metered
-- one is spent.
with run as materialized (
    select r.id from agent.runs r join agent.idempotency_keys k on k.run_id = r.id
    where k.organization_id = %(organization_id)s and k.scope = %(scope)s and k.key = %(key)s
    for no key update of r
), done as (
    update agent.idempotency_keys k set
        state = 'completed', completed_at = clock_timestamp(), outcome_status = 'ok', outcome_code = null, output = %(output)s,
        resolved_by = %(user_id)s, resolved_at = clock_timestamp(), evidence = %(evidence)s
    from run
    where k.run_id = run.id and k.organization_id = %(organization_id)s and k.scope = %(scope)s and k.key = %(key)s
      and k.state = 'uncertain' and k.epoch = %(epoch)s
      and exists (select from agent.members m where m.organization_id = k.organization_id and m.user_id = %(user_id)s
                  and m.role in ('operator', 'admin'))
    returning k.organization_id, k.run_id, k.scope, k.key, k.epoch, k.attempt, k.tool, k.span_id
), effect as (
    insert into agent.effects (organization_id, run_id, kind, tool, scope, key, epoch, attempt, span_id, actor, note)
    select organization_id, run_id, 'confirmed', tool, scope, key, epoch, attempt, span_id, %(user_id)s, %(evidence)s from done
), hold as (
    update agent.usage_reservations h set state = 'settled', ended_at = clock_timestamp()
    from done
    where h.owner = 'claim' and h.owner_ref = concat_ws(':', done.organization_id, done.scope, done.key, done.epoch) and h.state = 'held'
    returning h.organization_id, h.root_run_id, h.run_id, h.span_id, h.tool, h.amount
), line as (
    insert into agent.ai_usage_log (
        id, organization_id, root_run_id, run_id, span_id, kind, provider, item, quantity, unit, cost, ok, error, estimated
    )
    select %(usage_id)s, organization_id, root_run_id, run_id, span_id, 'tool', split_part(tool, '.', 1), tool, 1, 'call', amount, true, 'no_report', true
    from hold
    on conflict (id) do nothing
),
-- include: settled
select run_id from done

-- name: deny
-- It did not happen: the key is free again under a new epoch, a repeat asks a new approval, and what was held for it is free.
with run as materialized (
    select r.id from agent.runs r join agent.idempotency_keys k on k.run_id = r.id
    where k.organization_id = %(organization_id)s and k.scope = %(scope)s and k.key = %(key)s
    for no key update of r
), done as (
    delete from agent.idempotency_keys k using run
    where k.run_id = run.id and k.organization_id = %(organization_id)s and k.scope = %(scope)s and k.key = %(key)s
      and k.state = 'uncertain' and k.epoch = %(epoch)s
      and exists (select from agent.members m where m.organization_id = k.organization_id and m.user_id = %(user_id)s
                  and m.role in ('operator', 'admin'))
    returning k.organization_id, k.run_id, k.scope, k.key, k.epoch, k.attempt, k.tool, k.span_id, k.contract_hash, k.digest
), spent as (
    update agent.approvals a set spent_at = clock_timestamp()
    from done where a.run_id = done.run_id and a.tool = done.tool and a.contract_hash = done.contract_hash and a.digest = done.digest
      and a.spent_at is null
), effect as (
    insert into agent.effects (organization_id, run_id, kind, tool, scope, key, epoch, attempt, span_id, actor, note)
    select organization_id, run_id, 'denied', tool, scope, key, epoch, attempt, span_id, %(user_id)s, %(evidence)s from done
), hold as (
    update agent.usage_reservations h set state = 'released', ended_at = clock_timestamp()
    from done
    where h.owner = 'claim' and h.owner_ref = concat_ws(':', done.organization_id, done.scope, done.key, done.epoch) and h.state = 'held'
),
-- include: settled
select run_id from done

-- name: sweep_stale
-- Claims whose worker is gone and whose run will not propose them again: nothing had left, so they are forgotten.
with done as (
    delete from agent.idempotency_keys k using agent.runs r
    where k.run_id = r.id and k.state = 'processing' and k.effect_sent_at is null
      and k.lease_expires_at <= clock_timestamp() - make_interval(secs => %(grace_s)s)
      and r.state in ('succeeded', 'failed', 'cancelled')
    returning k.organization_id, k.run_id, k.scope, k.key, k.epoch, k.attempt, k.tool, k.span_id
), hold as (
    update agent.usage_reservations h set state = 'released', ended_at = clock_timestamp()
    from done
    where h.owner = 'claim' and h.owner_ref = concat_ws(':', done.organization_id, done.scope, done.key, done.epoch) and h.state = 'held'
), span as (
    update agent.spans s set state = 'closed', status = 'lost', ended_at = clock_timestamp()
    from done where s.run_id = done.run_id and s.id = done.span_id and s.state = 'open'
)
insert into agent.effects (organization_id, run_id, kind, tool, scope, key, epoch, attempt, span_id, note)
select organization_id, run_id, 'released', tool, scope, key, epoch, attempt, span_id, 'found by the sweep' from done

-- name: take_stale
-- Claims as sweep_uncertain finds them whose tools can be asked. Whoever takes them has their lease for as long as asking takes; epoch and
-- attempt stay, so a worker that was slow and not dead may still tell how its call ended.
with stale as materialized (
    select k.organization_id, k.scope, k.key, k.epoch, k.attempt
    from agent.idempotency_keys k join agent.runs r on r.id = k.run_id
    where k.state = 'processing' and k.effect_sent_at is not null and k.tool = any(%(probed)s)
      and k.lease_expires_at <= clock_timestamp() - make_interval(secs => %(grace_s)s)
      and
      -- include: not_repeatable
    order by k.lease_expires_at
    limit %(limit)s
    for update of k skip locked
), taken as (
    update agent.idempotency_keys k set lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
    from stale s
    where k.organization_id = s.organization_id and k.scope = s.scope and k.key = s.key and k.epoch = s.epoch and k.attempt = s.attempt
      and k.state = 'processing'
    returning k.*
)
select t.organization_id, t.scope, t.key, t.request_hash, t.run_id, t.fence, t.epoch, t.attempt, t.lease_expires_at, t.idempotency_class,
    t.effect_sent_at, t.vendor_key_ttl_s, t.connection_id, t.span_id, t.proposal_id, t.tool, t.contract_hash,
    coalesce(t.origin_trust, r.context_trust)::text as origin_trust, coalesce(p.arguments_text, t.arguments_text) as arguments_text,
    r.root_run_id, r.user_id, r.definition_name, c.name, c.version, c.spec, coalesce(s.attributes ->> 'step_path', 'agent') as step_path
from taken t
join agent.runs r on r.id = t.run_id
left join agent.tool_contracts c on c.contract_hash = t.contract_hash
left join agent.proposals p on p.run_id = t.run_id and p.id = t.proposal_id
left join agent.spans s on s.run_id = t.run_id and s.id = t.span_id

-- name: sweep_uncertain
-- Claims whose effect may have left and which nobody may repeat any more: an operator owns them now. Those of tools that can be asked
-- were asked about first, under the lease that the sweep took, and nobody could tell. Answers what is told of each.
with stale as materialized (
    select k.organization_id, k.scope, k.key, k.epoch, k.run_id
    from agent.idempotency_keys k join agent.runs r on r.id = k.run_id
    where k.state = 'processing' and k.effect_sent_at is not null
      and case concat_ws(' ', k.organization_id, k.scope, k.key, k.epoch, k.attempt) = any(%(asked)s)
          when true then true
          else k.lease_expires_at <= clock_timestamp() - make_interval(secs => %(grace_s)s) and not coalesce(k.tool = any(%(probed)s), false)
      end
      and
      -- include: not_repeatable
    order by k.lease_expires_at
    limit %(limit)s
    for update of k skip locked for no key update of r skip locked
), done as (
    update agent.idempotency_keys k set
        state = 'uncertain', uncertain_at = clock_timestamp(), lease_expires_at = null,
        uncertain_reason = 'the worker died after the effect may have left'
    from stale s
    where k.organization_id = s.organization_id and k.scope = s.scope and k.key = s.key and k.epoch = s.epoch and k.state = 'processing'
    returning k.organization_id, k.run_id, k.scope, k.key, k.epoch, k.attempt, k.tool, k.span_id, k.idempotency_class
), span as (
    update agent.spans s set
        state = 'closed', status = 'unknown', code = 'outcome_unknown', ended_at = clock_timestamp(),
        attributes = s.attributes || '{"tool.outcome_status": "uncertain", "tool.reason_code": "outcome_unknown"}'
    from done where s.run_id = done.run_id and s.id = done.span_id and s.state = 'open'
), run as (
    update agent.runs r set has_uncertain = true, partial_reason = coalesce(r.partial_reason, 'outcome_unknown: ' || d.tool)
    from (select distinct on (run_id) run_id, tool from done) d where r.id = d.run_id
), effect as (
    insert into agent.effects (organization_id, run_id, kind, tool, scope, key, epoch, attempt, span_id, note)
    select organization_id, run_id, 'uncertain', tool, scope, key, epoch, attempt, span_id, 'found by the sweep' from done
)
select d.run_id, d.span_id, d.tool, d.idempotency_class::text as idempotency_class,
    coalesce(s.attributes ->> 'step_path', 'agent') as step_path, s.attributes ->> 'wire_call_id' as call_id,
    coalesce(s.attributes ->> 'tool.source', 'unknown') as tool_source, (s.attributes ->> 'tool.version')::int as tool_version
from done d left join agent.spans s on s.run_id = d.run_id and s.id = d.span_id

-- name: sweep_holds
-- Reads whose money was held and whose end nobody told, as long as they could take: the vendor may have charged, so the bound is spent.
with lapsed as materialized (
    select id from agent.usage_reservations
    where state = 'held' and owner = 'read' and lease_expires_at <= clock_timestamp()
    order by lease_expires_at
    limit %(limit)s
    for update skip locked
), done as (
    update agent.usage_reservations h set state = 'settled', ended_at = clock_timestamp()
    from lapsed where h.id = lapsed.id and h.state = 'held'
    returning h.id, h.organization_id, h.root_run_id, h.run_id, h.span_id, h.tool, h.amount
), line as (
    insert into agent.ai_usage_log (
        id, organization_id, root_run_id, run_id, span_id, kind, provider, item, quantity, unit, cost, ok, error, estimated
    )
    select id, organization_id, root_run_id, run_id, span_id, 'tool', split_part(tool, '.', 1), tool, 1, 'call', amount, false, 'no_report', true
    from done
    on conflict (id) do nothing
)
select count(*) as swept from done
