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
    terminal_at, clock_timestamp() as now
from agent.provider_jobs
where id = %(id)s and organization_id = %(organization_id)s
