-- The statements of one call. Every write is fenced: on the run's lease before the effect, on the claim's epoch and attempt after it.

-- name: preflight
-- Everything a decision needs, in one statement: journal row, covering approval, live tool state, grant and membership, run.
-- What is one value is a subquery: as joins, the planner tries their orders at every call, longer than the reading takes.
select
    clock_timestamp() as now,
    r.fence,
    coalesce(r.lease_expires_at > clock_timestamp(), false) as lease_live,
    r.cancel_requested_at is not null as cancelled,
    r.context_trust::text as context_trust,
    r.tool_calls,
    r.ceilings,
    k.state as claim_state,
    k.request_hash as claim_request_hash,
    k.epoch as claim_epoch,
    k.attempt as claim_attempt,
    k.lease_expires_at as claim_lease_expires_at,
    coalesce(k.lease_expires_at > clock_timestamp(), false) as claim_lease_live,
    k.idempotency_class as claim_class,
    k.effect_sent_at as claim_effect_sent_at,
    k.vendor_key_ttl_s as claim_vendor_key_ttl_s,
    k.output as claim_output,
    k.span_id as claim_span_id,
    k.connection_id as claim_connection_id,
    a.id as approval_id,
    case when a.status = 'pending' and a.expires_at <= clock_timestamp() then 'expired' else a.status end as approval_status,
    a.decided_by as approval_decided_by,
    a.comment as approval_comment,
    a.connection_id as approval_connection_id,
    (select d.role from agent.members d where d.organization_id = r.organization_id and d.user_id = a.decided_by) as approval_decider_role,
    coalesce((
        select t.enabled and t.withdrawn_at is null from agent.tool_states t
        where t.organization_id = r.organization_id and t.tool = %(tool)s
    ), true) and not exists (
        select from agent.tool_releases l
        where l.tool = %(tool)s and l.version = %(version)s and (l.organization_id is null or l.organization_id = r.organization_id)
          and l.state = 'revoked' and (l.in_flight = 'refuse' or r.created_at >= l.revoked_at)
    ) as tool_enabled,
    exists (
        select from agent.grants g
        where g.organization_id = r.organization_id and g.definition = r.definition_name and g.tool = %(tool)s and g.state = 'active'
    ) and (r.parent_run_id is null or agent.granted_above(r.organization_id, r.parent_run_id, %(tool)s)) as granted,
    r.user_id is null or exists (
        select from agent.members m where m.organization_id = r.organization_id and m.user_id = r.user_id
    ) as member,
    r.kind as run_kind,
    coalesce((
        select p.version from agent.policy_versions p where p.scope = '00000000-0000-0000-0000-000000000000'
    ), 0) as platform_rules_version,
    coalesce((select p.version from agent.policy_versions p where p.scope = r.organization_id), 0) as organization_rules_version
from agent.runs r
left join agent.idempotency_keys k
    on k.organization_id = r.organization_id and k.scope = %(scope)s and k.key = %(key)s
left join lateral (
    select * from agent.approvals x
    where x.organization_id = r.organization_id and x.run_id = r.id and x.tool = %(tool)s
      and x.contract_hash = %(contract_hash)s and x.digest = %(digest)s
      and x.status <> 'cancelled' and x.spent_at is null
    order by x.created_at desc
    limit 1
) a on true
where r.id = %(run_id)s and r.organization_id = %(organization_id)s

-- name: claim_run
-- Head of COMMIT 1, before claim_body: only while the run's lease is ours.
with run as materialized (
    select id, organization_id from agent.runs
    where id = %(run_id)s and organization_id = %(organization_id)s and fence = %(fence)s
      and state = 'running' and lease_expires_at > clock_timestamp() and cancel_requested_at is null
    for share
)

-- name: claim_body
-- Middle of COMMIT 1, after a "with … run": claim, watermark, decision and open span, if the key is as the preflight saw it.
, claimed as (
    insert into agent.idempotency_keys as k (
        organization_id, scope, key, request_hash, run_id, fence, tool, contract_hash, digest, arguments_text, proposal_id, approval_id,
        span_id, lease_expires_at, idempotency_class, watermark, effect_sent_at, vendor_key_ttl_s, connection_id, origin_trust
    )
    select
        organization_id, %(scope)s, %(key)s, %(request_hash)s, id, %(fence)s, %(tool)s, %(contract_hash)s, %(digest)s,
        %(arguments_text)s, %(proposal_id)s, %(approval_id)s, %(span_id)s,
        clock_timestamp() + make_interval(secs => %(lease_s)s), %(class)s, %(watermark)s,
        case when %(watermark)s = 'at_claim' then clock_timestamp() end, %(vendor_key_ttl_s)s, %(connection_id)s,
        %(origin_trust)s::agent.trust
    from run
    on conflict (organization_id, scope, key) do update set
        fence = excluded.fence,
        attempt = k.attempt + 1,
        repeats = 0,
        claimed_at = clock_timestamp(),
        lease_expires_at = excluded.lease_expires_at,
        proposal_id = excluded.proposal_id,
        approval_id = excluded.approval_id,
        span_id = excluded.span_id,
        connection_id = excluded.connection_id,
        effect_sent_at = coalesce(k.effect_sent_at, excluded.effect_sent_at)
    where k.state = 'processing' and k.lease_expires_at <= clock_timestamp()
      and k.request_hash = excluded.request_hash
      and k.epoch = %(seen_epoch)s and k.attempt = %(seen_attempt)s
    returning k.run_id, k.organization_id, k.attempt, k.epoch, k.repeats, k.lease_expires_at, k.effect_sent_at
), lost as (
    update agent.spans s set state = 'closed', status = 'lost', ended_at = clock_timestamp()
    from claimed c
    where s.run_id = c.run_id and s.id = %(seen_span_id)s and s.state = 'open'
), span as (
    insert into agent.spans (id, organization_id, run_id, parent_id, kind, name, started_at, attributes, input)
    select %(span_id)s, organization_id, run_id, %(span_parent_id)s, 'tool', %(tool)s, %(span_started_at)s, %(span_attributes)s, %(span_input)s
    from claimed
), decision as (
    insert into agent.policy_decisions (
        id, organization_id, run_id, tool, contract_hash, digest, proposal_id, approval_id, effect, rule_id, rule_version, reason, context_trust
    )
    select %(decision_id)s, organization_id, run_id, %(tool)s, %(contract_hash)s, %(digest)s, %(proposal_id)s, %(approval_id)s,
        %(decision_effect)s, %(decision_rule_id)s, %(decision_rule_version)s, %(decision_reason)s, %(origin_trust)s::agent.trust
    from claimed
)

-- name: claim_row
-- End of COMMIT 1. No row: the lease is not ours, or the key moved.
select attempt, epoch, repeats, lease_expires_at, effect_sent_at from claimed

-- name: lock_meter
-- Whoever asks what a tree has left waits here for everybody who asked before, until their holds are in the table. First in its
-- transaction: the next statement reads with a snapshot that holds them. Locks are taken in the order meter, run, chains.
select pg_advisory_xact_lock('agent.usage_reservations'::regclass::oid::int, hashtext(root_run_id::text)) from agent.runs
where id = %(run_id)s and organization_id = %(organization_id)s

-- name: budget
-- What the tree has left, by lines and holds, and the prices that may apply; after lock_meter, in a statement of its own.
-- A hold that this call has already, by an attempt whose worker died, is in the sum: it needs no second one.
with leased as materialized (
    select id, organization_id, root_run_id, ceilings from agent.runs
    where id = %(run_id)s and organization_id = %(organization_id)s and fence = %(fence)s
      and state = 'running' and lease_expires_at > clock_timestamp() and cancel_requested_at is null
    for share
), total as materialized (
    select
        leased.id, leased.root_run_id, leased.organization_id,
        least((root.ceilings ->> 'max_cost')::numeric, (leased.ceilings ->> 'max_cost')::numeric) as ceiling,
        exists (
            select from agent.usage_reservations r
            where r.owner = %(owner)s and r.owner_ref = %(held_ref)s and r.state = 'held' and r.root_run_id = leased.root_run_id
        ) as has_hold
    from leased join agent.runs root on root.id = leased.root_run_id and root.organization_id = leased.organization_id
), budget as materialized (
    select
        total.*,
        case when total.ceiling is null or total.has_hold then true else (
            select sum(u.amount) < total.ceiling and sum(u.amount) + %(bound)s::numeric <= total.ceiling
            from (
                select 0::numeric as amount
                union all
                select l.cost from agent.ai_usage_log l where l.root_run_id = total.root_run_id and l.cost is not null
                union all
                select r.amount from agent.usage_reservations r where r.root_run_id = total.root_run_id and r.state = 'held'
            ) u
        ) end as affordable,
        clock_timestamp() as now,
        agent.prices_of(total.organization_id, %(tool)s) as prices
    from total
)

-- name: claim_run_metered
-- Head of a metered COMMIT 1, after budget: as claim_run, if the key is as the preflight saw it and the bound fits.
, key as materialized (
    select not exists (
        select from agent.idempotency_keys k
        where k.organization_id = %(organization_id)s and k.scope = %(scope)s and k.key = %(key)s
          and (k.state <> 'processing' or k.lease_expires_at > clock_timestamp()
               or k.epoch is distinct from %(seen_epoch)s::bigint or k.attempt is distinct from %(seen_attempt)s::int)
    ) as as_seen
), run as materialized (
    select budget.id, budget.organization_id, budget.root_run_id from budget, key where budget.affordable and key.as_seen
)

-- name: claim_row_metered
-- End of a metered COMMIT 1: the bound is held for the claim's epoch. A row without an epoch: the bound did not fit, or the key moved.
, hold as (
    insert into agent.usage_reservations (organization_id, root_run_id, run_id, owner, owner_ref, amount, tool, span_id)
    select c.organization_id, run.root_run_id, c.run_id, 'claim', concat_ws(':', c.organization_id, %(scope)s::text, %(key)s::text, c.epoch),
        %(bound)s, %(tool)s, %(span_id)s
    from claimed c cross join run
    on conflict (owner, owner_ref) where state = 'held' do nothing
)
select budget.affordable, budget.now, budget.prices, key.as_seen, c.attempt, c.epoch, c.repeats, c.lease_expires_at, c.effect_sent_at
from budget cross join key left join claimed c on true

-- name: hold_for_read
-- After budget: the bound of a metered read is held before its handler starts, for as long as the call may take. No row: the lease is not ours.
, hold as (
    insert into agent.usage_reservations (
        id, organization_id, root_run_id, run_id, owner, owner_ref, amount, tool, span_id, lease_expires_at
    )
    select %(usage_id)s, organization_id, root_run_id, id, 'read', %(held_ref)s, %(bound)s, %(tool)s, %(span_id)s,
        clock_timestamp() + make_interval(secs => %(lease_s)s)
    from budget where affordable
    on conflict (owner, owner_ref) where state = 'held' do nothing
)
select affordable, now, prices from budget

-- name: end_read
-- A metered read has ended: its lines take the place of what was held, or nothing was charged and the hold goes. Asked again after a
-- dropped connection, `stood` and `lines` tell that the first time arrived.
with ended as (
    update agent.usage_reservations set state = %(state)s, ended_at = clock_timestamp()
    where owner = 'read' and owner_ref = %(held_ref)s and organization_id = %(organization_id)s and state = 'held'
    returning organization_id, root_run_id, run_id, span_id
), usage as (
    insert into agent.ai_usage_log (
        id, organization_id, root_run_id, run_id, span_id, kind, provider, item, quantity, unit, cost, price_row, ok, error, estimated
    )
    select u.id, ended.organization_id, ended.root_run_id, ended.run_id, ended.span_id, u.kind, u.provider, u.item, u.quantity, u.unit,
        u.cost, u.price_row, u.ok, u.error, u.estimated
    from ended
    cross join jsonb_to_recordset(%(usage)s::jsonb)
        as u(id uuid, kind text, provider text, item text, quantity numeric, unit text, cost numeric, price_row text, ok boolean,
             error text, estimated boolean)
    on conflict (id) do nothing
)
select
    exists (select from ended) as ended,
    (select r.state from agent.usage_reservations r where r.id = %(usage_id)s) as stood,
    (select count(*) from agent.ai_usage_log l join jsonb_to_recordset(%(usage)s::jsonb) as u(id uuid, estimated boolean)
        on u.id = l.id and u.estimated = l.estimated) as lines

-- name: prices
-- The prices that may apply to a call of a tool now.
select clock_timestamp() as now, agent.prices_of(%(organization_id)s, %(tool)s) as prices

-- name: mark_effect_sent
-- The watermark of a tool that sets it at the transport: from here on the effect may have left.
update agent.idempotency_keys set effect_sent_at = coalesce(effect_sent_at, clock_timestamp())
where organization_id = %(organization_id)s and scope = %(scope)s and key = %(key)s
  and state = 'processing' and epoch = %(epoch)s and attempt = %(attempt)s and lease_expires_at > clock_timestamp()

-- name: count_repeat
-- One more execution in place, under the same key.
update agent.idempotency_keys set repeats = repeats + 1
where organization_id = %(organization_id)s and scope = %(scope)s and key = %(key)s
  and state = 'processing' and epoch = %(epoch)s and attempt = %(attempt)s

-- name: end_complete
-- Head of COMMIT 2: the answer is stored for good.
update agent.idempotency_keys set
    state = 'completed', completed_at = clock_timestamp(), lease_expires_at = null, outcome_status = %(outcome_status)s,
    outcome_code = %(outcome_code)s, output = %(output)s, artifact_id = %(artifact_id)s,
    arguments_text = coalesce(%(arguments_text)s, arguments_text)
where organization_id = %(organization_id)s and scope = %(scope)s and key = %(key)s
  and state = 'processing' and epoch = %(epoch)s and attempt = %(attempt)s
returning organization_id, run_id, scope, key, epoch, attempt, tool

-- name: end_release
-- Head of COMMIT 2: nothing happened. The row goes, and the next claim of the key draws a new epoch.
delete from agent.idempotency_keys
where organization_id = %(organization_id)s and scope = %(scope)s and key = %(key)s
  and state = 'processing' and epoch = %(epoch)s and attempt = %(attempt)s
returning organization_id, run_id, scope, key, epoch, attempt, tool

-- name: end_hold
-- Head of COMMIT 2: nobody knows yet. The claim stays until its lease ends.
update agent.idempotency_keys set arguments_text = coalesce(%(arguments_text)s, arguments_text)
where organization_id = %(organization_id)s and scope = %(scope)s and key = %(key)s
  and state = 'processing' and epoch = %(epoch)s and attempt = %(attempt)s
returning organization_id, run_id, scope, key, epoch, attempt, tool

-- name: end_uncertain
-- Head of COMMIT 2: nobody will know. An operator owns it now.
update agent.idempotency_keys set
    state = 'uncertain', uncertain_at = clock_timestamp(), lease_expires_at = null, uncertain_reason = %(reason)s,
    arguments_text = coalesce(%(arguments_text)s, arguments_text)
where organization_id = %(organization_id)s and scope = %(scope)s and key = %(key)s
  and state = 'processing' and epoch = %(epoch)s and attempt = %(attempt)s
returning organization_id, run_id, scope, key, epoch, attempt, tool

-- name: end_record
-- Tail of COMMIT 2, after "with done as (head)": span, effect record, usage, artifact, proposal, and the run's mark of uncertainty.
, span as (
    update agent.spans s set
        state = 'closed', status = %(span_status)s, code = %(span_code)s, ended_at = %(span_ended_at)s,
        attributes = s.attributes || %(span_attributes)s::jsonb, output = %(span_output)s, input = coalesce(%(span_input)s, s.input)
    from done
    where s.run_id = done.run_id and s.id = %(span_id)s
), effect as (
    insert into agent.effects (organization_id, run_id, kind, tool, scope, key, epoch, attempt, span_id, outcome_code, note)
    select organization_id, run_id, %(effect_kind)s, tool, scope, key, epoch, attempt, %(span_id)s, %(outcome_code)s, %(reason)s from done
), usage as (
    insert into agent.ai_usage_log (
        id, organization_id, root_run_id, run_id, span_id, kind, provider, item, quantity, unit, cost, price_row, ok, error, estimated
    )
    select u.id, done.organization_id, r.root_run_id, r.id, %(span_id)s, u.kind, u.provider, u.item, u.quantity, u.unit,
        coalesce(u.cost, p.cost), coalesce(u.price_row, p.price_row), u.ok, u.error, u.estimated
    from done join agent.runs r on r.id = done.run_id
    cross join jsonb_array_elements(%(usage)s::jsonb) as line
    cross join jsonb_to_record(line) as u(
        id uuid, kind text, provider text, item text, quantity numeric, unit text, cost numeric, price_row text, ok boolean,
        error text, estimated boolean)
    cross join agent.cost_of(done.organization_id, line) p
    on conflict (id) do nothing
), artifact as (
    insert into agent.artifacts (id, organization_id, run_id, span_id, media_type, trust, sha256, size_bytes, complete, place, body)
    select a.id, done.organization_id, done.run_id, %(span_id)s, a.media_type, a.trust, a.sha256, a.size_bytes, a.complete, a.place, a.body
    from done
    cross join unnest(%(artifact_ids)s::uuid[], %(artifact_media_types)s::text[], %(artifact_trusts)s::agent.trust[],
        %(artifact_hashes)s::text[], %(artifact_sizes)s::bigint[], %(artifact_completes)s::boolean[], %(artifact_places)s::text[],
        %(artifact_bodies)s::bytea[]) as a(id, media_type, trust, sha256, size_bytes, complete, place, body)
    on conflict (id) do nothing
), proposal as (
    update agent.proposals p set state = 'done', done_at = clock_timestamp(), outcome_code = %(outcome_code)s
    from done
    where p.run_id = done.run_id and p.id = %(proposal_id)s and p.state <> 'done' and %(effect_kind)s in ('completed', 'uncertain')
), run as (
    update agent.runs r set has_uncertain = true, partial_reason = coalesce(r.partial_reason, 'outcome_unknown: ' || done.tool)
    from done
    where r.id = done.run_id and %(effect_kind)s = 'uncertain'
)

-- name: end_row
-- End of COMMIT 2. Zero: a later worker owns the call.
select count(*) as ended from done

-- name: end_reservation
-- What was held for a metered claim goes with COMMIT 2, before end_row: its lines take the place, or nothing was charged.
, hold as (
    update agent.usage_reservations r set state = %(hold)s, ended_at = clock_timestamp()
    from done
    where r.owner = 'claim' and r.owner_ref = concat_ws(':', done.organization_id, done.scope, done.key, done.epoch) and r.state = 'held'
)

-- name: refuse
-- A refused call, committed at once: span, decision, proposal done.
with run as materialized (
    select id, organization_id from agent.runs
    where id = %(run_id)s and organization_id = %(organization_id)s and fence = %(fence)s and state = 'running'
      and lease_expires_at > clock_timestamp()
    for share
), span as (
    insert into agent.spans (
        id, organization_id, run_id, parent_id, kind, name, state, status, code, started_at, ended_at, attributes, input
    )
    select %(span_id)s, organization_id, id, %(span_parent_id)s, 'tool', %(span_name)s, 'closed', %(span_status)s, %(span_code)s,
        %(span_started_at)s, %(span_ended_at)s, %(span_attributes)s, %(span_input)s
    from run
), decision as (
    insert into agent.policy_decisions (
        id, organization_id, run_id, tool, contract_hash, digest, proposal_id, approval_id, effect, rule_id, rule_version, reason, context_trust
    )
    select %(decision_id)s, organization_id, id, %(span_name)s, %(decision_contract_hash)s, %(decision_digest)s, %(proposal_id)s,
        %(decision_approval_id)s, %(decision_effect)s, %(decision_rule_id)s, %(decision_rule_version)s, %(decision_reason)s,
        %(decision_context_trust)s::agent.trust
    from run where %(decision_id)s::uuid is not null
), proposal as (
    update agent.proposals p set state = 'done', done_at = clock_timestamp(), outcome_code = %(code)s
    from run
    where p.run_id = run.id and p.id = %(proposal_id)s and p.state <> 'done'
)
select count(*) as refused from run
