-- Work that a provider finishes later. The row is the truth and its event a nudge; a job that has ended stays as it ended.

-- name: submit
-- Reserves a job before its provider is called; the first to do so calls it. No row: the job is there.
insert into agent.provider_jobs (id, organization_id, root_run_id, run_id, tool_call_id, provider, contact_refs)
select %(id)s, r.organization_id, r.root_run_id, r.id, %(tool_call_id)s, %(provider)s, %(contact_refs)s
from agent.runs r
where r.id = %(run_id)s and r.organization_id = %(organization_id)s
on conflict (id) do nothing
returning id

-- name: bind
-- Notes the vendor's own id, once.
update agent.provider_jobs set provider_job_id = %(provider_job_id)s
where id = %(id)s and organization_id = %(organization_id)s and provider_job_id is null

-- name: keep_result
-- Before a transition that names it: a body that is too large for its job's row, kept once under its digest.
insert into agent.provider_job_results (job_id, organization_id, digest, body)
select j.id, j.organization_id, %(digest)s, %(body)s from agent.provider_jobs j
where j.id = %(id)s and j.organization_id = %(organization_id)s
on conflict (job_id, digest) do nothing

-- name: move
-- One transition with all that goes with it, if the job may make it. One that ends the job leaves an event behind; progress leaves none.
with moved as (
    update agent.provider_jobs j set
        state = %(state)s, result = %(result)s, result_digest = %(result_digest)s, cost = %(cost)s,
        terminal_at = case when %(terminal)s then clock_timestamp() end
    where j.id = %(id)s and j.organization_id = %(organization_id)s
      and (j.state = 'submitted' and %(state)s <> 'submitted' or j.state = 'running' and %(terminal)s)
    returning j.id, j.organization_id, j.run_id
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select %(event_id)s, organization_id, run_id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', run_id, 'job_id', id)
    from moved where %(terminal)s
)
select count(*) as moved from moved

-- name: read
-- One job.
select id, organization_id, root_run_id, run_id, provider, provider_job_id, state, result, result_digest, cost, usage_id, submitted_at,
    terminal_at, contact_refs, note, late_report, unknown_at, asks, settle_failed_at, parked_at, clock_timestamp() as now
from agent.provider_jobs
where id = %(id)s and organization_id = %(organization_id)s

-- name: claim_of
-- The claim of the call that submits, found by its epoch: the key says run, step and arguments.
select key, span_id from agent.idempotency_keys
where organization_id = %(organization_id)s and run_id = %(run_id)s and tool = %(tool)s and epoch = %(epoch)s

-- name: reserve
-- Reserves a job for a live claim, and the money that is held for the call is the job's from here on. First: whoever inserted it.
with claim as materialized (
    select k.organization_id, k.run_id, k.scope, k.key, k.epoch, k.span_id from agent.idempotency_keys k
    where k.organization_id = %(organization_id)s and k.run_id = %(run_id)s and k.tool = %(tool)s and k.epoch = %(epoch)s
      and k.attempt = %(attempt)s and k.state = 'processing' and k.lease_expires_at > clock_timestamp()
), job as (
    insert into agent.provider_jobs (id, organization_id, root_run_id, run_id, tool_call_id, provider, contact_refs)
    select %(id)s, r.organization_id, r.root_run_id, r.id, claim.span_id, %(provider)s, %(contact_refs)s
    from claim join agent.runs r on r.id = claim.run_id and r.organization_id = claim.organization_id
    on conflict (id) do nothing
    returning id
), hold as (
    update agent.usage_reservations u set owner = 'job', owner_ref = job.id::text, lease_expires_at = null
    from claim, job
    where u.owner = 'claim' and u.owner_ref = concat_ws(':', claim.organization_id, claim.scope, claim.key, claim.epoch) and u.state = 'held'
)
select exists (select from job) as first, exists (select from claim) as live

-- name: note
-- Why a submit was not confirmed.
update agent.provider_jobs set note = %(note)s where id = %(id)s and organization_id = %(organization_id)s and provider_job_id is null

-- name: result_body
-- The body that a job's digest names.
select r.body from agent.provider_job_results r
where r.job_id = %(id)s and r.organization_id = %(organization_id)s and r.digest = %(digest)s

-- name: deliver
-- Everything that one report does to the job that its address names, of whichever organization: the only look across them, by the job's
-- own id. The work is a function of the database, which plans it once a connection.
select dropped, events from agent.take_report(
    %(provider)s, %(id)s, %(provider_job_id)s, %(names_it)s, %(state)s, %(terminal)s, %(result)s, %(result_digest)s, %(body)s, %(cost)s,
    %(delivery_id)s, %(body_hash)s, %(event_id)s, %(event_name)s, %(wake_name)s)

-- name: settle
-- The one usage line of an ended job, the stamp that makes it one, and the end of what was held, in one statement. What the provider
-- reported is counted by the prices of now; where it reported nothing, what was held counts, nothing for a job that was not metered. No row: it has not ended, or is settled.
with job as materialized (
    select j.* from agent.provider_jobs j
    where j.id = %(id)s and j.organization_id = %(organization_id)s and j.terminal_at is not null and j.usage_id is null
    for no key update
), hold as materialized (
    select u.id, u.amount, u.tool from job join agent.usage_reservations u on u.owner = 'job' and u.owner_ref = job.id::text and u.state = 'held'
), said as materialized (
    select job.*, coalesce(hold.tool, job.provider || '.submit') as item, coalesce(hold.amount, 0) as bound,
        coalesce((job.cost ->> 'quantity')::numeric, 1) as quantity, coalesce(job.cost ->> 'unit', 'job') as unit, job.cost is null as silent
    from job left join hold on true
), line as materialized (
    select said.*,
        case when said.silent then said.bound when said.quantity = 0 then 0 else p.cost end as amount, p.price_row
    from said cross join agent.cost_of(said.organization_id, jsonb_build_object(
        'kind', 'job', 'provider', said.provider, 'item', said.item, 'quantity', said.quantity, 'unit', said.unit)) p
), written as (
    insert into agent.ai_usage_log (
        id, organization_id, root_run_id, run_id, span_id, kind, provider, item, quantity, unit, cost, price_row, ok, error, estimated
    )
    select %(usage_id)s, organization_id, root_run_id, run_id, tool_call_id, 'job', provider, item, quantity, unit, amount,
        case when silent then null else price_row end, state = 'completed', case when silent then 'no_report' end, silent
    from line where amount is not null
    on conflict (id) do nothing
), stamped as (
    update agent.provider_jobs j set usage_id = %(usage_id)s, settled_at = clock_timestamp(), settle_failed_at = null
    from line where j.id = line.id and line.amount is not null
), closed as (
    update agent.usage_reservations u set state = 'settled', ended_at = clock_timestamp()
    from hold, line where u.id = hold.id and line.amount is not null
)
select amount is not null as settled, provider, item, unit from line

-- name: settle_failed
-- Nobody could count what the job cost; the money stays held. No row: it is settled, or was given up before.
update agent.provider_jobs set settle_failed_at = clock_timestamp()
where id = %(id)s and organization_id = %(organization_id)s and terminal_at is not null and usage_id is null and settle_failed_at is null

-- name: nudge_unsettled
-- Ended jobs whose cost is not settled are asked for again, each by an event of its own, at most once in a while; a twelfth as often once
-- they were given up.
with late as (
    update agent.provider_jobs j set nudged_at = clock_timestamp()
    where j.id in (
        select x.id from agent.provider_jobs x
        where x.usage_id is null and x.terminal_at is not null
          and coalesce(x.nudged_at, x.terminal_at) <= clock_timestamp() - make_interval(
              secs => %(quiet_s)s * case when x.settle_failed_at is null then 1 else 12 end)
        order by x.terminal_at
        limit %(limit)s
        for update skip locked
    )
    returning j.id, j.organization_id, j.run_id
)
insert into agent.outbox (id, organization_id, run_id, name, data)
select gen_random_uuid(), organization_id, run_id, %(event_name)s,
    jsonb_build_object('organization_id', organization_id, 'run_id', run_id, 'job_id', id)
from late
returning id

-- name: take_silent
-- Jobs of a provider that said nothing for its window, or that a person asks about: each is taken by one asker, with the time of the next.
update agent.provider_jobs j set asks = j.asks + 1, next_ask_at = clock_timestamp() + make_interval(secs => %(again_s)s)
where j.id in (
    select x.id from agent.provider_jobs x
    where x.provider = %(provider)s and x.state in ('submitted', 'running') and x.provider_job_id is not null
      and case when %(id)s::uuid is null
          then x.submitted_at <= clock_timestamp() - make_interval(secs => %(window_s)s) and coalesce(x.next_ask_at <= clock_timestamp(), true)
          else x.id = %(id)s and x.organization_id = %(organization_id)s
      end
    order by coalesce(x.next_ask_at, x.submitted_at)
    limit %(limit)s
    for update skip locked
)
returning j.id, j.organization_id

-- name: become_unknown
-- Jobs whose provider never named an id within its window: an operator finds out what became of them. Their money stays held.
update agent.provider_jobs j set unknown_at = clock_timestamp()
where j.provider = %(provider)s and j.state in ('submitted', 'running') and j.provider_job_id is null and j.unknown_at is null
  and j.submitted_at <= clock_timestamp() - make_interval(secs => %(window_s)s)
returning j.id, j.organization_id

-- name: list
-- Jobs of an organization, the latest first.
select id, organization_id, root_run_id, run_id, provider, provider_job_id, state, null as result, result_digest, cost, usage_id, submitted_at,
    terminal_at, contact_refs, note, late_report, unknown_at, asks, settle_failed_at, parked_at, clock_timestamp() as now
from agent.provider_jobs
where organization_id = %(organization_id)s
  and case %(which)s
      when 'open' then state in ('submitted', 'running')
      when 'unknown' then unknown_at is not null and terminal_at is null
      when 'unsettled' then terminal_at is not null and usage_id is null
      else true
  end
order by submitted_at desc
limit %(limit)s

-- name: resolve_refused
-- An operator found that the provider never took the job: it ends at no cost, and its event settles it. No row: the person may not, or
-- the job is not one of which nobody knows.
with moved as (
    update agent.provider_jobs j set
        state = 'failed', terminal_at = clock_timestamp(), cost = %(cost)s, unknown_at = null, resolved_by = %(user_id)s, evidence = %(evidence)s
    where j.id = %(id)s and j.organization_id = %(organization_id)s and j.state = 'submitted' and j.unknown_at is not null
      and j.provider_job_id is null
      and exists (select from agent.members m where m.organization_id = j.organization_id and m.user_id = %(user_id)s
                  and m.role in ('operator', 'admin'))
    returning j.id, j.organization_id, j.run_id
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select %(event_id)s, organization_id, run_id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', run_id, 'job_id', id)
    from moved
)
select id from moved

-- name: resolve_bound
-- An operator found the provider's own id of a job of which nobody knew it; asking the provider tells the rest.
update agent.provider_jobs j set
    provider_job_id = %(provider_job_id)s, unknown_at = null, resolved_by = %(user_id)s, evidence = %(evidence)s
where j.id = %(id)s and j.organization_id = %(organization_id)s and j.unknown_at is not null and j.provider_job_id is null
  and exists (select from agent.members m where m.organization_id = j.organization_id and m.user_id = %(user_id)s
              and m.role in ('operator', 'admin'))
returning j.id
