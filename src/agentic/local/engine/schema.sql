-- State of the embedded function engine: one machine, one schema, made by the engine itself when it starts.
-- Applied under the engine's advisory lock and safe to apply again. JSON columns are `json`, not `jsonb`: the text of an
-- event and of a step's answer must come back as it was sent, key order and \u0000 included, and nothing is queried inside.

create schema if not exists agentic_engine;

-- An application that registered: where its functions are called now. A worker on another port replaces the address.
create table if not exists agentic_engine.apps (
    name        text primary key,
    url         text not null,
    checksum    text not null,
    synced_at   timestamptz not null
);

-- A function as the SDK declared it. `active` is false once its app no longer lists it: no new runs, old ones still end.
create table if not exists agentic_engine.functions (
    id          text primary key,
    app         text not null references agentic_engine.apps (name) on delete cascade,
    config      json not null,
    active      boolean not null
);

-- What started a run once and must not start it again before `until`: an event id, or the value of an idempotency expression.
create table if not exists agentic_engine.starts (
    function_id text not null,
    key         text not null,
    until       timestamptz not null,
    primary key (function_id, key)
);

-- One run of one function. `stack` holds the finished steps in the order they finished, which the SDK is told.
create table if not exists agentic_engine.runs (
    id          text primary key,
    function_id text not null references agentic_engine.functions (id) on delete cascade,
    status      text not null,
    event       json not null,
    stack       text[] not null default '{}',
    slots       text[] not null default '{}',
    slot_limits int[] not null default '{}',
    version     int not null default -1,
    parent_run  text,
    parent_step text,
    result      json,
    started_at  timestamptz not null,
    ended_at    timestamptz,
    constraint runs_status_known check (status in ('running', 'completed', 'failed', 'cancelled')),
    constraint runs_ended_when_not_running check ((status = 'running') = (ended_at is null)),
    constraint runs_parent_is_whole check ((parent_run is null) = (parent_step is null)),
    constraint runs_slots_have_limits check (cardinality(slots) = cardinality(slot_limits))
);
-- `events` are all that a batch started with, null where that is `event` alone. `priority` moves the run's calls forward by so
-- many seconds. `singleton` is the key that no second running run of the function has. `start_by` ends a run that was not
-- called by then; `finish_s` becomes `finish_by` when it is called first.
alter table agentic_engine.runs
    add column if not exists events    json,
    add column if not exists priority  int not null default 0,
    add column if not exists singleton text,
    add column if not exists start_by  timestamptz,
    add column if not exists begun_at  timestamptz,
    add column if not exists finish_s  double precision,
    add column if not exists finish_by timestamptz;
create unique index if not exists runs_one_per_singleton on agentic_engine.runs (function_id, singleton)
    where status = 'running' and singleton is not null;
create index if not exists runs_running on agentic_engine.runs (function_id) where status = 'running';

-- The memo of a finished step, as the SDK is given it on every later call. JSON null is a sleep or a wait that ran out.
create table if not exists agentic_engine.steps (
    run_id      text not null references agentic_engine.runs (id) on delete cascade,
    id          text not null,
    name        text not null,
    memo        json not null,
    done_at     timestamptz not null,
    primary key (run_id, id)
);

-- A call the app still owes an answer to. `step` is 'step' for "go on from the top", or the hash of one planned step.
-- `again` asks for one more call from the top, wanted while this one was already on its way.
create table if not exists agentic_engine.jobs (
    id                bigint generated always as identity primary key,
    run_id            text not null references agentic_engine.runs (id) on delete cascade,
    step              text not null,
    attempt           int not null default 0,
    again             boolean not null default false,
    due_at            timestamptz not null,
    unreachable_since timestamptz,
    unreachable_count int not null default 0,
    leased_by         text,
    lease_expires_at  timestamptz,
    constraint jobs_one_per_step unique (run_id, step),
    constraint jobs_attempt_not_negative check (attempt >= 0),
    constraint jobs_lease_is_whole check ((leased_by is null) = (lease_expires_at is null))
);
create index if not exists jobs_due on agentic_engine.jobs (due_at);

-- A step that ends without the app: a sleep, a wait for an event, a function invoked by this one.
create table if not exists agentic_engine.pauses (
    run_id      text not null references agentic_engine.runs (id) on delete cascade,
    step        text not null,
    name        text not null,
    kind        text not null,
    due_at      timestamptz not null,
    event_name  text,
    expression  text,
    race        boolean not null default false,
    primary key (run_id, step),
    constraint pauses_kind_known check (kind in ('sleep', 'event', 'invoke')),
    constraint pauses_event_is_named check ((kind = 'event') = (event_name is not null))
);
create index if not exists pauses_due on agentic_engine.pauses (due_at);
create index if not exists pauses_waiting on agentic_engine.pauses (event_name) where kind = 'event';

-- When each cron trigger fires next.
create table if not exists agentic_engine.crons (
    function_id text not null references agentic_engine.functions (id) on delete cascade,
    expression  text not null,
    next_at     timestamptz not null,
    primary key (function_id, expression)
);

-- Events that wait to start a function: the last one of a debounce, or the batch so far.
create table if not exists agentic_engine.held (
    function_id text not null references agentic_engine.functions (id) on delete cascade,
    kind        text not null,
    key         text not null,
    events      json not null,
    first_at    timestamptz not null,
    due_at      timestamptz not null,
    primary key (function_id, kind, key),
    constraint held_kind_known check (kind in ('batch', 'debounce'))
);
create index if not exists held_due on agentic_engine.held (due_at);

-- Up to when a rate limit or a throttle is used up.
create table if not exists agentic_engine.rates (
    function_id text not null references agentic_engine.functions (id) on delete cascade,
    kind        text not null,
    key         text not null,
    used_until  timestamptz not null,
    primary key (function_id, kind, key),
    constraint rates_kind_known check (kind in ('rate_limit', 'throttle'))
);

-- What the engine tells itself: events about ended runs, written with the end and taken in by the next tick.
create table if not exists agentic_engine.inbox (
    id    bigint generated always as identity primary key,
    event json not null
);
