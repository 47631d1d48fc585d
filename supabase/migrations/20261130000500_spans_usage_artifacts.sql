-- Why: the tree of a run (who did what, when, with which answer), what it cost, and what was too large to show.

create table agent.spans (
    id uuid not null,
    organization_id uuid not null,
    run_id uuid not null,
    parent_id uuid,
    kind text not null,
    name text not null,
    state text not null default 'open',
    status text,
    code text,
    started_at timestamptz not null,
    ended_at timestamptz,
    attributes jsonb not null default '{}',
    input text,
    output text,
    constraint spans_pk primary key (run_id, id, started_at),
    constraint spans_kind_known check (kind in ('run', 'segment', 'llm', 'tool', 'wait')),
    constraint spans_state_known check (state in ('open', 'closed')),
    constraint spans_status_known check (status is null or status in ('ok', 'error', 'unknown', 'lost')),
    constraint spans_closed_is_whole check ((state = 'closed') = (ended_at is not null and status is not null))
) partition by range (started_at);
create table agent.spans_default partition of agent.spans default;

-- Creates the partitions of this month and the next; the sweep calls it, with its owner's right to create tables, and the default
-- partition takes what it missed.
create function agent.ensure_span_partitions() returns void
language plpgsql security definer set search_path = '' as $$
declare
    month timestamptz;
    name text;
begin
    for i in 0..1 loop
        month := date_trunc('month', clock_timestamp() at time zone 'UTC') at time zone 'UTC' + make_interval(months => i);
        name := 'spans_' || to_char(month at time zone 'UTC', 'YYYYMM');
        if to_regclass('agent.' || name) is null
           and not exists (select from agent.spans_default where started_at >= month and started_at < month + interval '1 month') then
            execute format('create table agent.%I partition of agent.spans for values from (%L) to (%L)', name, month, month + interval '1 month');
            execute format('alter table agent.%I enable row level security', name);
        end if;
    end loop;
end
$$;
select agent.ensure_span_partitions();

create table agent.ai_usage_log (
    id uuid not null,
    organization_id uuid not null,
    root_run_id uuid not null,
    run_id uuid not null,
    span_id uuid,
    kind text not null,
    provider text not null,
    item text not null,
    quantity numeric not null,
    unit text not null,
    cost numeric,
    currency text not null default 'USD',
    price_row text,
    input_tokens bigint,
    output_tokens bigint,
    cached_tokens bigint,
    reasoning_tokens bigint,
    ok boolean not null default true,
    error text,
    at timestamptz not null default clock_timestamp(),
    constraint ai_usage_log_pk primary key (id),
    constraint ai_usage_log_kind_known check (kind in ('model', 'tool', 'job')),
    constraint ai_usage_log_not_negative check (quantity >= 0 and (cost is null or cost >= 0))
);
create index ai_usage_log_by_root on agent.ai_usage_log (root_run_id);
create index ai_usage_log_by_day on agent.ai_usage_log (organization_id, at);
create trigger ai_usage_log_append_only before update or delete on agent.ai_usage_log for each row execute function agent.refuse_change();

create table agent.usage_reservations (
    id uuid not null default gen_random_uuid(),
    organization_id uuid not null,
    root_run_id uuid not null,
    run_id uuid not null,
    owner text not null,
    owner_ref text not null,
    amount numeric not null,
    state text not null default 'held',
    lease_expires_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    constraint usage_reservations_pk primary key (id),
    constraint usage_reservations_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint usage_reservations_owner_known check (owner in ('claim', 'read', 'job', 'child')),
    constraint usage_reservations_state_known check (state in ('held', 'settled', 'released')),
    constraint usage_reservations_ended_has_time check ((state = 'held') = (ended_at is null)),
    constraint usage_reservations_not_negative check (amount >= 0)
);
create unique index usage_reservations_held_once on agent.usage_reservations (owner, owner_ref) where state = 'held';
create index usage_reservations_held on agent.usage_reservations (root_run_id) where state = 'held';

create table agent.artifacts (
    id uuid not null,
    organization_id uuid not null,
    run_id uuid not null,
    span_id uuid,
    media_type text not null default 'application/json',
    trust agent.trust not null,
    sha256 text not null,
    size_bytes bigint not null,
    complete boolean not null,
    body bytea not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint artifacts_pk primary key (id),
    constraint artifacts_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade
);
create index artifacts_by_run on agent.artifacts (run_id);
create trigger artifacts_immutable before update on agent.artifacts for each row execute function agent.refuse_change();
