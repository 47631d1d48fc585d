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
