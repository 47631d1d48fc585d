-- Why: a provider reports the end of a job through a callback that may come early, late, twice, in any order, forged, or never. What was
-- heard after the end, what was dropped and why, when a silent provider was asked, and what a person found out stand beside the job.

alter table agent.provider_jobs
    -- A report that came after the end and says otherwise; shown, never charged. The last one.
    add column late_report jsonb,
    -- Why the submit was not confirmed, as far as the answer said.
    add column note text,
    -- Nobody knows whether the provider ever accepted it; an operator finds out. Its money stays held.
    add column unknown_at timestamptz,
    add column asks int not null default 0,
    add column next_ask_at timestamptz,
    -- When the settling of an ended job was last asked for again, and when it was last given up.
    add column nudged_at timestamptz,
    add column settle_failed_at timestamptz,
    add column settled_at timestamptz,
    -- When a run first parked on it; a job is waited for once.
    add column parked_at timestamptz,
    add column resolved_by uuid,
    add column evidence text,
    add constraint provider_jobs_unknown_has_no_id check (unknown_at is null or provider_job_id is null),
    add constraint provider_jobs_settled_has_line check (settled_at is null or usage_id is not null),
    add constraint provider_jobs_resolution_has_evidence check ((resolved_by is null) = (evidence is null));
create index provider_jobs_unknown on agent.provider_jobs (organization_id, unknown_at) where unknown_at is not null;

-- Deliveries that changed nothing, by reason. Holds nothing of what was delivered; a row for each day (UTC), provider and reason.
create table agent.webhook_drops (
    provider text not null,
    reason text not null,
    day date not null,
    drops bigint not null default 1,
    last_at timestamptz not null default clock_timestamp(),
    constraint webhook_drops_pk primary key (provider, reason, day),
    constraint webhook_drops_reason_known check (
        reason in ('bad_signature', 'unreadable', 'unknown_job', 'job_mismatch', 'not_terminal', 'duplicate', 'late')),
    constraint webhook_drops_counted check (drops > 0)
);
alter table agent.webhook_drops enable row level security;
revoke all on agent.webhook_drops from public, anon, authenticated;
grant select, insert, update, delete on agent.webhook_drops to service_role;

-- A run may wait for a job, until it has ended or until a time; null for no time but the run's deadline.
alter table agent.run_waits add column over_at timestamptz;
create index run_waits_for_jobs on agent.run_waits (ref) where kind = 'provider_job';

-- As before, and a wait for a job is over when the job has ended or the wait's time has come.
create or replace function agent.run_is_due(r agent.runs) returns boolean
language sql stable set search_path = '' as $$
    select (r).state in ('queued', 'running', 'parked')
       and ((r).lease_expires_at is null or (r).lease_expires_at <= clock_timestamp())
       and (
            (r).cancel_requested_at is not null
         or (r).deadline_at <= clock_timestamp()
         or case (r).state
                when 'parked' then coalesce((
                    select case
                        when a.id is not null then agent.approval_is_settled(a)
                        else coalesce(w.over_at <= clock_timestamp(), false) or exists (
                            select from agent.provider_jobs j where j.id = w.ref and j.terminal_at is not null)
                    end
                    from agent.run_waits w
                    left join agent.approvals a on w.kind = 'approval' and a.id = w.ref
                    where w.run_id = (r).id and (a.id is not null or w.kind = 'provider_job')
                    order by w.ordinal
                    limit 1
                ), not exists (select from agent.run_waits w where w.run_id = (r).id))
                else (r).due_at is null or (r).due_at <= clock_timestamp()
            end
       )
$$;
