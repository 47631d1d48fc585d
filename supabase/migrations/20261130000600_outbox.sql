-- Why: a change and the event that tells of it are one commit. Whoever commits sends right away; the sweep resends what was not sent.

create table agent.outbox (
    id uuid not null,
    organization_id uuid not null,
    run_id uuid not null,
    name text not null,
    data jsonb not null,
    state text not null default 'pending',
    attempts int not null default 0,
    last_error text,
    next_attempt_at timestamptz not null default clock_timestamp(),
    created_at timestamptz not null default clock_timestamp(),
    sent_at timestamptz,
    constraint outbox_pk primary key (id),
    constraint outbox_state_known check (state in ('pending', 'sent')),
    constraint outbox_sent_has_time check ((state = 'sent') = (sent_at is not null))
);
create index outbox_pending on agent.outbox (next_attempt_at) where state = 'pending';
