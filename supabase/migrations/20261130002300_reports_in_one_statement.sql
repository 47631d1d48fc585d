-- Why: a report of a provider is stored by one long statement behind a lock. Sent as text it is parsed and planned anew for every
-- callback, which costs the database more than running it. As a function it is planned once a connection, it is one short statement on
-- the wire, and what was heard before writes nothing.

-- Everything that one report does, as one transaction: the provider's id, the large body, the transition if the job may make it, the claim
-- on the delivery, the event that ends waits and settles, the wake-ups of runs parked on the job, and what a report after the end says
-- otherwise. Answers why nothing ended, null when this report ended the job, and the events that are to be sent.
create function agent.take_report(
    of_provider text, of_job uuid, said_id text, names_job boolean, said_state text, ends boolean, said_result jsonb, said_digest text,
    said_body text, said_cost jsonb, delivery text, delivery_hash text, end_event uuid, end_name text, wake_name text
) returns table (dropped text, events jsonb)
language plpgsql set search_path = '' as $$
declare
    known record;
begin
    select j.organization_id, j.provider_job_id, j.state, j.cost, j.terminal_at into known from agent.provider_jobs j
    where j.id = of_job and j.provider = of_provider;
    if not found then
        return query select 'unknown_job', '[]'::jsonb;
        return;
    end if;
    -- An end stays, so what an ended job has heard already needs no lock and leaves nothing.
    if known.terminal_at is not null and known.provider_job_id = said_id and (
        not ends
        or (known.state, known.cost) is not distinct from (said_state, said_cost) and exists (
            select from agent.idempotency_keys k
            where k.organization_id = known.organization_id and k.scope = 'webhook.' || of_provider and k.key = delivery)
    ) then
        return query select case when ends then 'duplicate' else 'not_terminal' end, '[]'::jsonb;
        return;
    end if;
    -- Whoever reports about a job waits here for everybody who reported before; the next statement sees what they committed.
    perform from agent.provider_jobs j where j.id = of_job for no key update;
    return query
    with job as materialized (
        select j.*,
            j.state = 'submitted' and said_state <> 'submitted' or j.state = 'running' and ends as legal,
            j.terminal_at is not null and ends and (j.state, j.cost) is distinct from (said_state, said_cost) as otherwise
        from agent.provider_jobs j
        where j.id = of_job and j.provider = of_provider and (j.provider_job_id = said_id or j.provider_job_id is null and names_job)
    ), claimed as (
        insert into agent.idempotency_keys (
            organization_id, scope, key, state, request_hash, run_id, idempotency_class, completed_at, output, outcome_status
        )
        select job.organization_id, 'webhook.' || job.provider, delivery, 'completed', delivery_hash, job.run_id, 'idempotent',
            clock_timestamp(), ''::bytea, 'ok'
        from job where ends
        on conflict (organization_id, scope, key) do nothing
    ), kept as (
        insert into agent.provider_job_results (job_id, organization_id, digest, body)
        select job.id, job.organization_id, said_digest, said_body from job where job.legal and said_body is not null
        on conflict (job_id, digest) do nothing
    ), moved as (
        update agent.provider_jobs j set
            provider_job_id = coalesce(j.provider_job_id, said_id),
            unknown_at = null,
            state = case when job.legal then said_state else j.state end,
            result = case when job.legal then said_result else j.result end,
            result_digest = case when job.legal then said_digest else j.result_digest end,
            cost = case when job.legal then said_cost else j.cost end,
            terminal_at = case when job.legal and ends then clock_timestamp() else j.terminal_at end,
            late_report = case
                when job.otherwise then jsonb_build_object('state', said_state, 'cost', said_cost, 'at', clock_timestamp())
                else j.late_report
            end
        from job
        where j.id = job.id and (job.legal or job.otherwise or job.provider_job_id is null)
    ), ended as (
        insert into agent.outbox (id, organization_id, run_id, name, data)
        select end_event, organization_id, run_id, end_name,
            jsonb_build_object('organization_id', organization_id, 'run_id', run_id, 'job_id', id)
        from job where legal and ends
        returning id, organization_id, run_id, name, data
    ), waiting as (
        update agent.runs r set wake_seq = r.wake_seq + 1
        from job
        where job.legal and ends and r.state = 'parked' and r.id in (
            select w.run_id from agent.run_waits w where w.kind = 'provider_job' and w.ref = job.id
        )
        returning r.id, r.organization_id, r.lane
    ), woken as (
        insert into agent.outbox (id, organization_id, run_id, name, data)
        select gen_random_uuid(), organization_id, id, wake_name,
            jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
        from waiting
        returning id, organization_id, run_id, name, data
    )
    select
        case when not ends then 'not_terminal' when job.legal then null when job.otherwise then 'late' else 'duplicate' end,
        (select coalesce(jsonb_agg(to_jsonb(e)), '[]') from (select * from ended union all select * from woken) e)
    from job;
    if not found then  -- it is about another job
        return query select 'job_mismatch', '[]'::jsonb;
    end if;
end
$$;

revoke all on function agent.take_report(
    text, uuid, text, boolean, text, boolean, jsonb, text, text, jsonb, text, text, uuid, text, text) from public, anon, authenticated;
grant execute on function agent.take_report(
    text, uuid, text, boolean, text, boolean, jsonb, text, text, jsonb, text, text, uuid, text, text) to service_role;
