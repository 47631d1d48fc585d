-- The life of a run: started once, led under a lease, written only by whoever holds the fence, woken by anybody.

-- name: lock_family
-- First part of starting a child: its ancestors, from the root down, in which order every cancel takes them too. Whoever cancels one of
-- them comes before, and the next statement sees it, or after, and sees the child.
with recursive family as (
    select id, parent_run_id from agent.runs where id = %(parent_run_id)s and organization_id = %(organization_id)s
    union all
    select p.id, p.parent_run_id from family f join agent.runs p on p.id = f.parent_run_id and p.organization_id = %(organization_id)s
)
select r.id from agent.runs r where r.id in (select id from family) order by r.depth for share of r

-- name: start
-- Starts a run once per request key: contracts, grants of its inline definition, first messages and the nudge are one commit. A child is
-- of its parent's tree, believes no more than the parent and does not outlive it; no row: the key is taken, or the parent takes no child.
with parent as (
    select p.id, p.root_run_id, p.depth, p.context_trust, p.deadline_at from agent.runs p
    where p.id = %(parent_run_id)s and p.organization_id = %(organization_id)s and p.state in ('queued', 'running', 'parked')
      and p.cancel_requested_at is null and p.deadline_at > clock_timestamp()
), run as (
    insert into agent.runs (
        id, organization_id, request_key, request_digest, kind, user_id, lane, root_run_id, parent_run_id, depth, session_id,
        definition_name, definition, tools, ceilings, context_trust, deadline_at
    )
    select
        %(id)s, %(organization_id)s, %(request_key)s, %(request_digest)s, 'agent', %(user_id)s, %(lane)s,
        coalesce(parent.root_run_id, %(id)s), parent.id, coalesce(parent.depth + 1, 0), %(session_id)s,
        %(definition_name)s, %(definition)s, %(tools)s, %(ceilings)s, least(%(trust)s::agent.trust, parent.context_trust),
        least(clock_timestamp() + make_interval(secs => %(deadline_s)s), parent.deadline_at)
    from (select) one left join parent on true
    where %(parent_run_id)s::uuid is null or parent.id is not null
    on conflict (organization_id, request_key) do nothing
    returning id, organization_id, lane
), contracts as (
    insert into agent.tool_contracts (contract_hash, organization_id, name, version, spec)
    select c.contract_hash, c.organization_id, c.name, c.version, c.spec
    from run cross join jsonb_to_recordset(%(contracts)s::jsonb)
        as c(contract_hash text, organization_id uuid, name text, version int, spec text)
    on conflict (contract_hash) do nothing
), grants as (
    insert into agent.grants (organization_id, definition, tool, granted_by)
    select run.organization_id, %(definition_name)s, c.name, %(user_id)s
    from run cross join jsonb_to_recordset(%(contracts)s::jsonb) as c(name text)
    on conflict (organization_id, definition, tool) do nothing
), messages as (
    insert into agent.run_messages (run_id, seq, organization_id, message_id, role, format, body, trust, fence)
    select run.id, m.n, run.organization_id, m.id, m.role, %(format)s, m.body, m.trust, 0
    from run
    cross join unnest(%(message_ids)s::text[], %(message_roles)s::text[], %(message_bodies)s::bytea[], %(message_trusts)s::agent.trust[])
        with ordinality as m(id, role, body, trust, n)
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select %(event_id)s, organization_id, id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
    from run
)
select id from run

-- name: parent
-- What a child may have of its parent: the tools it was shown whose grants are live.
select p.id, p.state, p.user_id, p.depth, p.cancel_requested_at is not null as cancelled, p.deadline_at <= clock_timestamp() as overdue,
    array(
        select t.name from jsonb_to_recordset(p.tools) as t(name text)
        join agent.grants g on g.organization_id = p.organization_id and g.definition = p.definition_name and g.tool = t.name
        where g.state = 'active'
    ) as tools
from agent.runs p
where p.id = %(run_id)s and p.organization_id = %(organization_id)s

-- name: session
-- What the runs of a person's session said that have ended with an answer, the newest first, and how many there are. The words of a run
-- are the last message its start wrote; those before it came from still earlier runs.
with ended as (
    select r.id, r.answer, r.context_trust, r.created_at from agent.runs r
    where r.organization_id = %(organization_id)s and r.session_id = %(session_id)s
      and (r.user_id = %(user_id)s or r.user_id is null and %(user_id)s::uuid is null)
      and r.state in ('succeeded', 'failed', 'cancelled') and r.answer is not null
)
select e.id, e.answer, e.context_trust::text as answer_trust, m.message_id, m.format, m.body, m.trust::text as trust,
    (select count(*) from ended) as answered
from ended e
cross join lateral (
    select x.message_id, x.format, x.body, x.trust from agent.run_messages x
    where x.run_id = e.id and x.fence = 0 and x.role = 'user'
    order by x.seq desc
    limit 1
) m
order by e.created_at desc, e.id desc
limit %(limit)s

-- name: session_uncertain
-- The tools whose calls in the session's ended runs, or in runs these started, nobody knows the end of.
select distinct k.tool from agent.runs s
join agent.runs f on f.root_run_id = s.id
join agent.idempotency_keys k on k.run_id = f.id and k.state = 'uncertain' and k.tool is not null
where s.organization_id = %(organization_id)s and s.session_id = %(session_id)s
  and (s.user_id = %(user_id)s or s.user_id is null and %(user_id)s::uuid is null)
  and s.state in ('succeeded', 'failed', 'cancelled') and f.has_uncertain
order by k.tool

-- name: find_by_request
-- The run an earlier start with this key made.
select id, request_digest from agent.runs where organization_id = %(organization_id)s and request_key = %(request_key)s

-- name: take
-- Takes the lease of a run that is due, and returns what leading it needs. No row: somebody else leads it, or there is nothing to do.
-- The segment of a leader that died is closed as lost. Where money is bounded, it says what is spent and what others hold; what the run
-- itself holds its segment settles before it asks the model.
with led as (
    update agent.runs r set
        -- include: taken
    where r.id = %(run_id)s and r.organization_id = %(organization_id)s and r.kind <> 'workflow' and agent.run_is_due(r)
    returning
        r.id, r.organization_id, r.user_id, r.lane, r.root_run_id, r.definition_name, r.definition, r.tools, r.ceilings,
        r.context_trust::text as context_trust, r.fence, r.wake_seq, r.attempts_without_progress, r.provider_failures, r.active_ms, r.model_requests,
        r.tool_calls, r.has_uncertain, r.partial_reason, r.breakers,
        r.leased_at, r.cancel_requested_at is not null as cancelled, r.deadline_at <= clock_timestamp() as overdue
),
-- include: segment
select led.*, m.*
from led cross join lateral agent.segment_money(led.root_run_id, led.id, led.organization_id, led.ceilings) m

-- name: contracts
-- The frozen specs of a run.
select contract_hash, name, version, spec from agent.tool_contracts where contract_hash = any(%(hashes)s)

-- name: messages
-- The message log of a run, in order.
select message_id, role, format, body, trust::text as trust from agent.run_messages
where run_id = %(run_id)s and organization_id = %(organization_id)s
order by seq

-- name: words
-- The message log of a run without the model's own messages, in order.
select message_id, role, format, body, trust::text as trust from agent.run_messages
where run_id = %(run_id)s and organization_id = %(organization_id)s and role <> 'assistant'
order by seq

-- name: proposals
-- The calls of the last stored pause.
select id, turn, ordinal, model_call_id, model_name, tool, arguments_text, fault, state from agent.proposals p
where run_id = %(run_id)s and organization_id = %(organization_id)s
  and turn = (select max(turn) from agent.proposals x where x.run_id = %(run_id)s)
order by ordinal

-- name: renew
-- Keeps the lease. No row: it is not ours any more.
update agent.runs set lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
where id = %(run_id)s and organization_id = %(organization_id)s and fence = %(fence)s and state = 'running'
  and lease_expires_at > clock_timestamp()
returning cancel_requested_at is not null as cancelled

-- name: append
-- The checkpoint: messages, proposals, and the records of the segment so far. No row: the lease is not ours. Usage without a cost is
-- priced here; where money is bounded, the answer says what the tree has spent and holds with it.
with run as (
    update agent.runs set
        context_trust = least(context_trust, %(trust)s::agent.trust),
        model_requests = model_requests + %(model_requests)s,
        tool_calls = tool_calls + %(tool_calls)s,
        breakers = coalesce(%(breakers)s::jsonb, breakers)
    where id = %(run_id)s and organization_id = %(organization_id)s and fence = %(fence)s and state = 'running'
      and lease_expires_at > clock_timestamp()
    returning id, organization_id, root_run_id, ceilings, model_requests, tool_calls, context_trust::text as context_trust,
        cancel_requested_at is not null as cancelled,
        active_ms + (extract(epoch from clock_timestamp() - leased_at) * 1000)::bigint as active_ms
), last as (
    select coalesce(max(seq), 0) as seq from agent.run_messages where run_id = %(run_id)s
), messages as (
    insert into agent.run_messages (run_id, seq, organization_id, message_id, role, format, body, trust, fence)
    select run.id, last.seq + row_number() over (order by m.n), run.organization_id, m.id, m.role, %(format)s, m.body, m.trust, %(fence)s
    from run cross join last
    cross join unnest(%(message_ids)s::text[], %(message_roles)s::text[], %(message_bodies)s::bytea[], %(message_trusts)s::agent.trust[])
        with ordinality as m(id, role, body, trust, n)
    where not exists (select from agent.run_messages x where x.run_id = %(run_id)s and x.message_id = m.id)
), proposals as (
    insert into agent.proposals (id, run_id, organization_id, turn, ordinal, model_call_id, model_name, tool, arguments_text, fault)
    select p.id, run.id, run.organization_id, p.turn, p.ordinal, p.model_call_id, p.model_name, p.tool, p.arguments_text, p.fault
    from run
    cross join jsonb_to_recordset(%(proposals)s::jsonb)
        as p(id uuid, turn int, ordinal int, model_call_id text, model_name text, tool text, arguments_text text, fault text)
    on conflict (run_id, turn, ordinal) do nothing
), answered as (
    update agent.proposals p set state = 'done', done_at = clock_timestamp()
    from run
    where p.run_id = run.id and p.state <> 'done' and p.id = any(%(answered)s::uuid[])
), decisions as (
    insert into agent.policy_decisions (
        id, organization_id, run_id, tool, contract_hash, digest, proposal_id, approval_id, effect, rule_id, rule_version, reason, context_trust
    )
    select d.id, run.organization_id, run.id, d.tool, d.contract_hash, d.digest, d.proposal_id, d.approval_id, d.effect, d.rule_id,
        d.rule_version, d.reason, d.context_trust
    from run
    cross join jsonb_to_recordset(%(decisions)s::jsonb) as d(
        id uuid, tool text, contract_hash text, digest text, proposal_id uuid, approval_id uuid, effect text, rule_id text,
        rule_version int, reason text, context_trust agent.trust)
), spans as (
    insert into agent.spans (
        id, organization_id, run_id, parent_id, kind, name, state, status, code, started_at, ended_at, attributes, input, output
    )
    select s.id, run.organization_id, run.id, s.parent_id, s.kind, s.name, case when s.ended_at is null then 'open' else 'closed' end,
        s.status, s.code, s.started_at, s.ended_at, s.attributes, s.input, s.output
    from run
    cross join jsonb_to_recordset(%(spans)s::jsonb) as s(
        id uuid, parent_id uuid, kind text, name text, status text, code text, started_at timestamptz, ended_at timestamptz,
        attributes jsonb, input text, output text)
    on conflict (run_id, id, started_at) do update set
        state = excluded.state, status = excluded.status, code = excluded.code, ended_at = excluded.ended_at,
        attributes = agent.spans.attributes || excluded.attributes, output = excluded.output
), usage as (
    insert into agent.ai_usage_log (
        id, organization_id, root_run_id, run_id, span_id, kind, provider, item, quantity, unit, cost, price_row, input_tokens, output_tokens,
        cached_tokens, reasoning_tokens, ok, error, estimated
    )
    select u.id, run.organization_id, run.root_run_id, run.id, u.span_id, u.kind, u.provider, u.item, u.quantity, u.unit,
        coalesce(u.cost, p.cost), coalesce(u.price_row, p.price_row), u.input_tokens, u.output_tokens, u.cached_tokens,
        u.reasoning_tokens, u.ok, u.error, coalesce(u.estimated, false)
    from run
    cross join jsonb_array_elements(%(usage)s::jsonb) as line
    cross join jsonb_to_record(line) as u(
        id uuid, span_id uuid, kind text, provider text, item text, quantity numeric, unit text, cost numeric, price_row text,
        input_tokens bigint, output_tokens bigint, cached_tokens bigint, reasoning_tokens bigint, ok boolean, error text,
        estimated boolean)
    cross join agent.cost_of(run.organization_id, line) p
    on conflict (id) do nothing
    returning kind, provider, item, cost
), artifacts as (
    insert into agent.artifacts (id, organization_id, run_id, span_id, media_type, trust, sha256, size_bytes, complete, place, body)
    select a.id, run.organization_id, run.id, a.span_id, a.media_type, a.trust, a.sha256, a.size_bytes, a.complete, a.place, a.body
    from run
    cross join unnest(%(artifact_ids)s::uuid[], %(artifact_spans)s::uuid[], %(artifact_media_types)s::text[],
        %(artifact_trusts)s::agent.trust[], %(artifact_hashes)s::text[], %(artifact_sizes)s::bigint[], %(artifact_completes)s::boolean[],
        %(artifact_places)s::text[], %(artifact_bodies)s::bytea[])
        as a(id, span_id, media_type, trust, sha256, size_bytes, complete, place, body)
    on conflict (id) do nothing
), events as (
    insert into agent.run_events (organization_id, run_id, kind, data)
    select run.organization_id, run.id, e.kind, e.data
    from run cross join jsonb_to_recordset(%(events)s::jsonb) as e(n int, kind text, data jsonb)
    order by e.n
)
select model_requests, tool_calls, context_trust, cancelled, active_ms, m.max_cost,
    m.spent + (select coalesce(sum(u.cost), 0) from usage u) as tree_spent,
    m.held as tree_held,
    case when m.max_cost is not null then (
        select jsonb_build_object('provider', u.provider, 'item', u.item) from usage u where u.kind = 'model' and u.cost is null limit 1
    ) end as unpriced
from run cross join lateral agent.tree_money(run.root_run_id, run.id, run.ceilings) m

-- name: clear_waits
-- First part of parking: what the run waited for before.
delete from agent.run_waits w using agent.runs r
where w.run_id = r.id and r.id = %(run_id)s and r.organization_id = %(organization_id)s and r.fence = %(fence)s and r.state = 'running'

-- name: file_approvals
-- Second part of parking: the questions, each open at most once. One that was open at the preflight may have been decided since, and is
-- not asked again: its answer counts at the next pass.
insert into agent.approvals (
    organization_id, run_id, tool, contract_hash, digest, arguments_text, shown, rule_id, rule_version, reason, four_eyes, requested_by,
    connection_id, account, expires_at
)
select r.organization_id, r.id, q.tool, q.contract_hash, q.digest, q.arguments_text, q.shown, q.rule_id, q.rule_version, q.reason,
    coalesce(q.four_eyes, false), r.user_id, q.connection_id, q.account,
    least(clock_timestamp() + make_interval(secs => %(expires_s)s), r.deadline_at)
from agent.runs r
cross join jsonb_to_recordset(%(questions)s::jsonb) as q(
    ordinal int, tool text, contract_hash text, digest text, arguments_text text, shown text, rule_id text, rule_version int, reason text,
    four_eyes boolean, connection_id uuid, account text, approval_id uuid)
where r.id = %(run_id)s and r.organization_id = %(organization_id)s and r.fence = %(fence)s and r.state = 'running'
  and r.lease_expires_at > clock_timestamp()
  and (q.approval_id is null or exists (select from agent.approvals x where x.id = q.approval_id and x.status = 'pending'))
on conflict (run_id, tool, contract_hash, digest) where status = 'pending' do update set
    four_eyes = true, rule_id = excluded.rule_id, rule_version = excluded.rule_version, reason = excluded.reason
where excluded.four_eyes and not approvals.four_eyes

-- name: park
-- Third part of parking: the waits, the state, and on the row of each call that asks its approval. A wake-up that came since the lease was
-- taken leaves a nudge behind, and a question that no open proposal asks any more is stale.
with
-- include: parked
waits as (
    insert into agent.run_waits (run_id, organization_id, kind, ref, ordinal)
    select p.id, p.organization_id, 'approval', a.id, q.ordinal
    from parked p
    cross join jsonb_to_recordset(%(questions)s::jsonb)
        as q(ordinal int, tool text, contract_hash text, digest text, approval_id uuid)
    join agent.approvals a on a.run_id = p.id and a.tool = q.tool and a.contract_hash = q.contract_hash and a.digest = q.digest
        and (a.id = q.approval_id or q.approval_id is null and a.status = 'pending')
), asked as (
    update agent.spans s set attributes = s.attributes || jsonb_build_object('approval.id', a.id)
    from parked p
    cross join jsonb_to_recordset(%(questions)s::jsonb)
        as q(tool text, contract_hash text, digest text, approval_id uuid, span_id uuid)
    join agent.approvals a on a.run_id = p.id and a.tool = q.tool and a.contract_hash = q.contract_hash and a.digest = q.digest
        and (a.id = q.approval_id or q.approval_id is null and a.status = 'pending')
    where s.run_id = p.id and s.id = q.span_id
), stale as (
    update agent.approvals a set status = 'cancelled', decided_at = clock_timestamp()
    from parked p
    where a.run_id = p.id and a.status = 'pending' and a.expires_at > clock_timestamp()
      and not exists (
          select from jsonb_to_recordset(%(questions)s::jsonb) as q(tool text, contract_hash text, digest text)
          where q.tool = a.tool and q.contract_hash = a.contract_hash and q.digest = a.digest
      )
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select %(event_id)s, organization_id, id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
    from parked where wake_seq <> %(wake_seq)s
    returning id
)
select (select count(*) from parked) as moved, (select count(*) from nudge) as nudged

-- name: lock_job
-- Part of parking on a job: whoever reports of the job waits until the park is there, or was before it, which the park then sees.
select id from agent.provider_jobs where id = %(job_id)s and organization_id = %(organization_id)s for no key update

-- name: park_on_job
-- Last part of parking on a job: state, wait, and that the job has been waited for. A wake-up that came since the lease was taken, or an
-- end that came before, leaves a nudge behind.
with
-- include: parked
waits as (
    insert into agent.run_waits (run_id, organization_id, kind, ref, over_at)
    select id, organization_id, 'provider_job', %(job_id)s, clock_timestamp() + make_interval(secs => %(within_s)s) from parked
), job as (
    update agent.provider_jobs j set parked_at = coalesce(j.parked_at, clock_timestamp())
    from parked
    where j.id = %(job_id)s and j.organization_id = parked.organization_id
    returning j.terminal_at is not null as ended
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select %(event_id)s, organization_id, id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
    from parked where wake_seq <> %(wake_seq)s or exists (select from job where ended)
    returning id
)
select (select count(*) from parked) as moved, (select count(*) from nudge) as nudged

-- name: release
-- Gives the lease back in order: the run is due again at once or at a time.
with released as (
    update agent.runs r set
        lease_expires_at = null,
        due_at = coalesce(%(due_at)s, clock_timestamp() + make_interval(secs => %(due_in_s)s)),
        attempts_without_progress = case when %(orderly)s then 0 else r.attempts_without_progress end,
        provider_failures = %(provider_failures)s,
        active_ms = r.active_ms + (extract(epoch from clock_timestamp() - r.leased_at) * 1000)::bigint
    where r.id = %(run_id)s and r.organization_id = %(organization_id)s and r.fence = %(fence)s and r.state = 'running'
    returning r.id, r.organization_id, r.lane, r.wake_seq, r.due_at
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select %(event_id)s, organization_id, id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
    from released where due_at is null or wake_seq <> %(wake_seq)s
    returning id
)
select (select count(*) from released) as moved, (select count(*) from nudge) as nudged, (select due_at from released) as due_at

-- name: finish
-- The terminal state, with why. Open questions of the run go with it. A run whose money is bounded does not succeed while a model
-- request of its tree has no price.
with unpriced as (
    select x.request from agent.runs r cross join lateral agent.unpriced_model(r.root_run_id, r.id, r.ceilings) x(request)
    where r.id = %(run_id)s and r.organization_id = %(organization_id)s and %(state)s = 'succeeded' and x.request is not null
), finished as (
    update agent.runs r set
        state = %(state)s, finished_at = clock_timestamp(), lease_expires_at = null, due_at = null, answer = %(answer)s,
        partial_reason = coalesce(%(partial_reason)s, r.partial_reason), error_code = %(error_code)s,
        active_ms = r.active_ms + (extract(epoch from clock_timestamp() - r.leased_at) * 1000)::bigint
    where r.id = %(run_id)s and r.organization_id = %(organization_id)s and r.fence = %(fence)s and r.state = 'running'
      and r.lease_expires_at > clock_timestamp() and not exists (select from unpriced)
    returning r.id
), stale as (
    update agent.approvals a set
        status = case when a.expires_at <= clock_timestamp() then 'expired' else 'cancelled' end, decided_at = clock_timestamp()
    from finished f where a.run_id = f.id and a.status = 'pending'
), waits as (
    delete from agent.run_waits w using finished f where w.run_id = f.id
)
select count(*) as moved, 0 as nudged, (select u.request from unpriced u) as unpriced
from finished

-- name: cancel
-- First part of asking a run to stop; the next boundary of a call obeys. A run that is over is locked all the same, so that no child
-- of its family starts unseen.
with target as materialized (
    select id from agent.runs where id = %(run_id)s and organization_id = %(organization_id)s for no key update
), asked as (
    update agent.runs r set
        cancel_requested_at = clock_timestamp(), cancel_requested_by = %(user_id)s, cancel_reason = %(reason)s, wake_seq = r.wake_seq + 1
    from target
    where r.id = target.id and r.state in ('queued', 'running', 'parked') and r.cancel_requested_at is null
    returning r.id, r.organization_id, r.lane
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select gen_random_uuid(), organization_id, id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
    from asked
    returning id
)
select array(select id from nudge) as nudges

-- name: cancel_family
-- Second part: the open runs below it, whoever started them. Nobody nudges the nodes of a workflow; its function looks at its container.
with recursive below as (
    select id from agent.runs where parent_run_id = %(run_id)s and organization_id = %(organization_id)s
    union all
    select c.id from below b join agent.runs c on c.parent_run_id = b.id and c.organization_id = %(organization_id)s
), open as materialized (
    select r.id from agent.runs r
    where r.id in (select id from below) and r.state in ('queued', 'running', 'parked') and r.cancel_requested_at is null
    order by r.depth, r.id
    for no key update of r
), asked as (
    update agent.runs r set
        cancel_requested_at = clock_timestamp(), cancel_requested_by = %(user_id)s, cancel_reason = %(reason)s, wake_seq = r.wake_seq + 1
    from open
    where r.id = open.id and r.state in ('queued', 'running', 'parked') and r.cancel_requested_at is null
    returning r.id, r.organization_id, r.lane, r.kind
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select gen_random_uuid(), organization_id, id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
    from asked where kind <> 'workflow'
    returning id
)
select array(select id from nudge) as nudges

-- name: nudge_due
-- The sweep: a nudge for each run that is due and was not nudged lately.
insert into agent.outbox (id, organization_id, run_id, name, data)
select gen_random_uuid(), r.organization_id, r.id, %(event_name)s,
    jsonb_build_object('organization_id', r.organization_id, 'run_id', r.id, 'lane', r.lane)
from agent.runs r
where r.state in ('queued', 'running', 'parked') and r.kind <> 'workflow' and agent.run_is_due(r)
  and not exists (
      select from agent.outbox o
      where o.run_id = r.id and o.created_at > clock_timestamp() - make_interval(secs => %(quiet_s)s)
  )
order by r.created_at
limit %(limit)s
returning id

-- name: show
-- One run, for people.
select r.id, r.organization_id, r.state, r.kind, r.lane, r.definition_name, r.definition, r.user_id, r.context_trust::text as context_trust,
    r.model_requests, r.tool_calls, r.active_ms, r.has_uncertain, r.answer, r.partial_reason, r.error_code, r.created_at, r.started_at,
    r.finished_at, r.due_at, r.deadline_at, r.fence, r.session_id, r.root_run_id, r.parent_run_id, r.depth, r.ceilings,
    r.cancel_requested_at, r.cancel_requested_by, r.cancel_reason,
    (select w.kind from agent.run_waits w where w.run_id = r.id and r.state = 'parked' order by w.ordinal limit 1) as parked_on
from agent.runs r
where r.id = %(run_id)s and r.organization_id = %(organization_id)s

-- name: list
-- Runs of an organization, the newest first, from behind a place; each condition that is null holds for all.
select id, state, kind, definition_name, lane, session_id, user_id, root_run_id, parent_run_id, depth, created_at, finished_at,
    has_uncertain, error_code, partial_reason
from agent.runs
where organization_id = %(organization_id)s
  and (%(states)s::text[] is null or state = any(%(states)s))
  and (%(agent)s::text is null or definition_name = %(agent)s)
  and (%(session_id)s::text is null or session_id = %(session_id)s)
  and (%(lane)s::text is null or lane = %(lane)s)
  and (%(root_run_id)s::uuid is null or root_run_id = %(root_run_id)s)
  and (%(created_after)s::timestamptz is null or created_at >= %(created_after)s)
  and (%(created_before)s::timestamptz is null or created_at < %(created_before)s)
  and (%(behind_at)s::timestamptz is null or (created_at, id) < (%(behind_at)s, %(behind_id)s::uuid))
order by created_at desc, id desc
limit %(limit)s

-- name: family
-- Every run of a run's tree, the root first; the run of a workflow's node with the node's id.
select f.id, f.parent_run_id, f.depth, f.kind, f.state, f.definition_name, f.created_at, f.finished_at, f.has_uncertain, f.error_code,
    f.partial_reason, case when f.kind = 'workflow' then f.definition ->> 'node' end as node
from agent.runs r
join agent.runs f on f.root_run_id = r.root_run_id and f.organization_id = r.organization_id
where r.id = %(run_id)s and r.organization_id = %(organization_id)s
order by f.depth, f.created_at, f.id
limit %(limit)s

-- name: spans
-- The tree of a run, with what each call and request cost.
select s.id, s.parent_id, s.kind, s.name, s.state, s.status, s.code, s.started_at, s.ended_at, s.attributes, s.input, s.output, u.cost,
    u.estimated, u.unpriced
from agent.spans s
left join (
    select span_id, sum(cost) as cost, bool_or(estimated) as estimated, count(*) filter (where cost is null) as unpriced
    from agent.ai_usage_log
    where root_run_id = (select r.root_run_id from agent.runs r where r.id = %(run_id)s) and run_id = %(run_id)s
    group by span_id
) u on u.span_id = s.id
where s.run_id = %(run_id)s and s.organization_id = %(organization_id)s
order by s.started_at, s.id

-- name: decisions
-- The decisions of a run, in the order of their chain.
select id, seq, tool, digest, effect, rule_id, rule_version, reason, context_trust::text as context_trust, approval_id, proposal_id, decided_at
from agent.policy_decisions
where run_id = %(run_id)s and organization_id = %(organization_id)s
order by seq

-- name: effects
-- What the run did to the world, or may have done.
select seq, kind, tool, epoch, attempt, span_id, outcome_code, note, at from agent.effects
where run_id = %(run_id)s and organization_id = %(organization_id)s
order by seq

-- name: cost
-- What the run cost so far; a root with everything its tree did.
select coalesce(sum(u.cost), 0) as cost, coalesce(sum(u.input_tokens), 0) as input_tokens, coalesce(sum(u.output_tokens), 0) as output_tokens,
    count(*) as rows, count(*) filter (where u.cost is null) as unpriced
from agent.ai_usage_log u
where u.organization_id = %(organization_id)s
  and u.root_run_id = (select r.root_run_id from agent.runs r where r.id = %(run_id)s and r.organization_id = %(organization_id)s)
  and (u.root_run_id = %(run_id)s or u.run_id = %(run_id)s)

-- name: ensure_partitions
-- The sweep's upkeep: partitions of the tree for this month and the next.
select agent.ensure_span_partitions()
