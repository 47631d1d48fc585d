-- Why: a run's durable state is its row, its messages and its open proposals. The lease on the row is the only mutex of a run;
-- one predicate says whether a run is due, used by whoever wants to advance it and by the sweep alike.

create table agent.runs (
    id uuid not null default gen_random_uuid(),
    organization_id uuid not null,
    request_key text not null,
    request_digest text not null,
    kind text not null default 'agent',
    state text not null default 'queued',
    user_id uuid,
    lane text not null default 'interactive',
    root_run_id uuid not null,
    parent_run_id uuid,
    depth int not null default 0,
    definition_name text not null,
    definition jsonb not null,
    tools jsonb not null default '[]',
    ceilings jsonb not null default '{}',
    context_trust agent.trust not null default 'user',
    fence bigint not null default 0,
    lease_expires_at timestamptz,
    leased_at timestamptz,
    wake_seq bigint not null default 0,
    due_at timestamptz,
    attempts_without_progress int not null default 0,
    -- How often in a row the model's provider was down; the wait grows with it. No fault of the run, so no attempt without progress.
    provider_failures int not null default 0,
    cancel_requested_at timestamptz,
    cancel_requested_by uuid,
    active_ms bigint not null default 0,
    deadline_at timestamptz not null default clock_timestamp() + interval '30 days',
    model_requests int not null default 0,
    tool_calls int not null default 0,
    breakers jsonb not null default '{}',
    has_uncertain boolean not null default false,
    answer text,
    partial_reason text,
    error_code text,
    created_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    finished_at timestamptz,
    constraint runs_pk primary key (id),
    constraint runs_request_once unique (organization_id, request_key),
    constraint runs_tenant unique (organization_id, id),
    constraint runs_kind_known check (kind in ('agent', 'workflow', 'application')),
    constraint runs_state_known check (state in ('queued', 'running', 'parked', 'succeeded', 'failed', 'cancelled')),
    constraint runs_terminal_has_time check ((state in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)),
    constraint runs_failed_names_why check (state <> 'failed' or error_code is not null),
    constraint runs_only_running_is_leased check (lease_expires_at is null or state = 'running')
);
create index runs_open on agent.runs (due_at) where state in ('queued', 'running', 'parked');
create index runs_by_organization on agent.runs (organization_id, created_at desc);
create index runs_by_root on agent.runs (root_run_id);

-- What a parked run waits for, several at once. The first in order decides whether it is due: the calls of a turn run in order.
create table agent.run_waits (
    run_id uuid not null,
    organization_id uuid not null,
    kind text not null,
    ref uuid not null,
    ordinal int not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    constraint run_waits_pk primary key (run_id, kind, ref),
    constraint run_waits_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint run_waits_kind_known check (kind in ('approval', 'provider_job', 'user_input', 'child_run'))
);

-- The framework's own message as bytes: jsonb would refuse U+0000 and rewrite numbers.
create table agent.run_messages (
    run_id uuid not null,
    seq int not null,
    organization_id uuid not null,
    message_id text not null,
    role text not null,
    format text not null,
    body bytea not null,
    trust agent.trust not null,
    fence bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint run_messages_pk primary key (run_id, seq),
    constraint run_messages_once unique (run_id, message_id),
    constraint run_messages_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint run_messages_role_known check (role in ('user', 'assistant', 'tool'))
);

create table agent.proposals (
    id uuid not null default gen_random_uuid(),
    run_id uuid not null,
    organization_id uuid not null,
    turn int not null,
    ordinal int not null,
    model_call_id text not null,
    model_name text not null,
    tool text not null,
    arguments_text text,
    digest text,
    fault text,
    state text not null default 'open',
    outcome_code text,
    created_at timestamptz not null default clock_timestamp(),
    done_at timestamptz,
    constraint proposals_pk primary key (id),
    constraint proposals_place unique (run_id, turn, ordinal),
    constraint proposals_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint proposals_state_known check (state in ('open', 'suspended', 'done')),
    constraint proposals_done_has_time check ((state = 'done') = (done_at is not null))
);
create index proposals_open on agent.proposals (run_id, turn, ordinal) where state <> 'done';
