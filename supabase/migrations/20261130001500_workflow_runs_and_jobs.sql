-- Why: a function of somebody else's that calls tools has runs of its own, a container and one run a node, which nobody leads but that
-- function. And work that a provider finishes after the call that began it is a row, which is the truth whatever happens to its event.

-- The container bounds its nodes in time, and a node has no parent but the container.
create index runs_of_workflows on agent.runs (deadline_at) where kind = 'workflow' and state in ('queued', 'running', 'parked');

create table agent.provider_jobs (
    id uuid not null,
    organization_id uuid not null,
    -- The tree the cost belongs to, the run that submitted, and the span of the call that did.
    root_run_id uuid not null,
    run_id uuid not null,
    tool_call_id uuid,
    provider text not null,
    -- The vendor's own id: set once, by whoever hears it first; null while nobody knows whether the vendor accepted.
    provider_job_id text,
    -- The references of the request, in its order; null where the provider's jobs have none.
    contact_refs jsonb,
    state text not null default 'submitted',
    -- At most 32 KiB; what is larger stands in provider_job_results, under its digest.
    result jsonb,
    result_digest text,
    cost jsonb,
    -- The one usage line; null until the cost is settled.
    usage_id uuid,
    submitted_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    terminal_at timestamptz,
    constraint provider_jobs_pk primary key (id),
    constraint provider_jobs_tenant unique (organization_id, id),
    constraint provider_jobs_of_vendor unique (provider, provider_job_id),
    constraint provider_jobs_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint provider_jobs_root foreign key (organization_id, root_run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint provider_jobs_state_known check (state in ('submitted', 'running', 'completed', 'failed', 'cancelled')),
    constraint provider_jobs_terminal_has_time check ((state in ('completed', 'failed', 'cancelled')) = (terminal_at is not null)),
    constraint provider_jobs_result_once check (result is null or result_digest is null),
    constraint provider_jobs_result_small check (octet_length(result::text) <= 65536),
    constraint provider_jobs_refs_are_a_list check (contact_refs is null or jsonb_typeof(contact_refs) = 'array')
);
create index provider_jobs_by_run on agent.provider_jobs (run_id);
create index provider_jobs_by_root on agent.provider_jobs (root_run_id);
create index provider_jobs_open on agent.provider_jobs (submitted_at) where state in ('submitted', 'running');
create index provider_jobs_unsettled on agent.provider_jobs (terminal_at) where usage_id is null and terminal_at is not null;

-- Whole answers of providers, private and immutable; the digest is of the canonical body.
create table agent.provider_job_results (
    job_id uuid not null,
    organization_id uuid not null,
    digest text not null,
    body text not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint provider_job_results_pk primary key (job_id, digest),
    constraint provider_job_results_job foreign key (organization_id, job_id)
        references agent.provider_jobs (organization_id, id) on delete cascade
);

-- Only forward, whoever writes: submitted, running, then one terminal state that stays. What a job is never changes, and what was heard
-- once about its vendor and its money stays.
create function agent.provider_job_moves() returns trigger
language plpgsql set search_path = '' as $$
begin
    if (new.id, new.organization_id, new.root_run_id, new.run_id, new.provider, new.submitted_at)
        is distinct from (old.id, old.organization_id, old.root_run_id, old.run_id, old.provider, old.submitted_at) then
        raise exception 'a provider job stays what it is' using errcode = 'restrict_violation', constraint = 'provider_jobs_identity';
    end if;
    if old.provider_job_id is not null and new.provider_job_id is distinct from old.provider_job_id
        or old.usage_id is not null and new.usage_id is distinct from old.usage_id then
        raise exception 'what is known of a provider job is set once' using errcode = 'restrict_violation', constraint = 'provider_jobs_set_once';
    end if;
    if old.state = new.state then
        if old.terminal_at is not null and (new.result, new.result_digest, new.cost, new.terminal_at)
            is distinct from (old.result, old.result_digest, old.cost, old.terminal_at) then
            raise exception 'a provider job that has ended stays as it ended'
                using errcode = 'restrict_violation', constraint = 'provider_jobs_terminal_stays';
        end if;
    elsif not (old.state = 'submitted' or old.state = 'running' and new.state in ('completed', 'failed', 'cancelled')) then
        raise exception 'a provider job does not go from % to %', old.state, new.state
            using errcode = 'restrict_violation', constraint = 'provider_jobs_moves';
    end if;
    new.updated_at := clock_timestamp();
    return new;
end
$$;
create trigger provider_jobs_moves before update on agent.provider_jobs for each row execute function agent.provider_job_moves();
create trigger provider_job_results_immutable before update on agent.provider_job_results
    for each row execute function agent.refuse_change();

alter table agent.provider_jobs enable row level security;
alter table agent.provider_job_results enable row level security;
revoke all on agent.provider_jobs, agent.provider_job_results from public, anon, authenticated;
grant select, insert, update, delete on agent.provider_jobs, agent.provider_job_results to service_role;
revoke all on function agent.provider_job_moves() from public, anon, authenticated;
grant execute on function agent.provider_job_moves() to service_role;
