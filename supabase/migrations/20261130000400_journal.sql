-- Why: one claim per effect. The row of a write or send says whether it is being done, was done, or may have been done.
-- epoch comes from a sequence, so a key that was released and claimed again never meets an old vendor key or an old worker's fence.

create sequence agent.claim_epochs;

create table agent.idempotency_keys (
    organization_id uuid not null,
    scope text not null,
    key text not null,
    state text not null default 'processing',
    request_hash text not null,
    run_id uuid,
    fence bigint,
    tool text,
    contract_hash text,
    digest text,
    arguments_text text,
    proposal_id uuid,
    approval_id uuid,
    span_id uuid,
    attempt int not null default 1,
    repeats int not null default 0,
    epoch bigint not null default nextval('agent.claim_epochs'),
    lease_expires_at timestamptz,
    idempotency_class text not null,
    watermark text not null default 'at_claim',
    effect_sent_at timestamptz,
    vendor_key_ttl_s int,
    connection_id uuid,
    parent_key text,
    parallel_group text,
    suspended_kind text,
    suspended_ref uuid,
    origin_trust agent.trust,
    outcome_status text,
    outcome_code text,
    output bytea,
    artifact_id uuid,
    response bytea,
    uncertain_at timestamptz,
    uncertain_reason text,
    resolved_by uuid,
    resolved_at timestamptz,
    evidence text,
    created_at timestamptz not null default clock_timestamp(),
    claimed_at timestamptz not null default clock_timestamp(),
    completed_at timestamptz,
    constraint idempotency_keys_pk primary key (organization_id, scope, key),
    constraint idempotency_keys_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint idempotency_keys_state_known check (state in ('processing', 'completed', 'uncertain')),
    constraint idempotency_keys_processing_is_leased check ((state = 'processing') = (lease_expires_at is not null)),
    constraint idempotency_keys_completed_is_whole check ((state = 'completed') = (completed_at is not null and output is not null and outcome_status is not null)),
    constraint idempotency_keys_uncertain_has_reason check (state <> 'uncertain' or (uncertain_at is not null and uncertain_reason is not null)),
    constraint idempotency_keys_class_known check (idempotency_class in ('idempotent', 'conditional', 'non_idempotent')),
    constraint idempotency_keys_watermark_known check (watermark in ('at_claim', 'at_transport')),
    constraint idempotency_keys_resolution_has_evidence check (resolved_at is null or (resolved_by is not null and evidence is not null))
);
create index idempotency_keys_stale on agent.idempotency_keys (lease_expires_at) where state = 'processing';
create index idempotency_keys_uncertain on agent.idempotency_keys (organization_id, uncertain_at) where state = 'uncertain';
create index idempotency_keys_by_run on agent.idempotency_keys (run_id);

-- What happened to the world, or may have: one line per transition of a claim, append-only and chained per run.
create table agent.effects (
    id uuid not null default gen_random_uuid(),
    organization_id uuid not null,
    run_id uuid not null,
    seq bigint not null,
    kind text not null,
    tool text not null,
    scope text not null,
    key text not null,
    epoch bigint not null,
    attempt int not null,
    span_id uuid,
    outcome_code text,
    actor uuid,
    note text,
    at timestamptz not null default clock_timestamp(),
    prev_hash text not null,
    hash text not null,
    constraint effects_pk primary key (id),
    constraint effects_chain unique (run_id, seq),
    constraint effects_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint effects_kind_known check (kind in ('completed', 'released', 'held', 'uncertain', 'confirmed', 'denied'))
);
create trigger effects_chain before insert on agent.effects for each row execute function agent.chain();
create trigger effects_append_only before update or delete on agent.effects for each row execute function agent.refuse_change();
