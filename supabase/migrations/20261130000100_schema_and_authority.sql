-- Why: the schema the package keeps its truth in, and who may do what: members, live grants, frozen tool contracts, live tool states.
-- Products' own tables live in public; nothing here is meant for a user's key, so row level security is on and no policy opens it.

create schema agent;
comment on schema agent is 'agentic: runs, calls, decisions, effects';

-- Ordered from least to most trusted, so that least() is the low-water mark.
create type agent.trust as enum ('external', 'internal', 'user', 'platform');

create table agent.members (
    organization_id uuid not null,
    user_id uuid not null,
    role text not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint members_pk primary key (organization_id, user_id),
    constraint members_role_known check (role in ('member', 'approver', 'operator', 'admin'))
);

create table agent.grants (
    organization_id uuid not null,
    definition text not null,
    tool text not null,
    state text not null default 'active',
    granted_by uuid,
    created_at timestamptz not null default clock_timestamp(),
    revoked_at timestamptz,
    constraint grants_pk primary key (organization_id, definition, tool),
    constraint grants_state_known check (state in ('active', 'revoked')),
    constraint grants_revoked_has_time check ((state = 'revoked') = (revoked_at is not null))
);

-- Frozen specs, each stored once. organization_id is null for the deployment's own code tools, which belong to nobody.
-- The spec is text, not jsonb: jsonb rewrites numbers, and the hash is over what was written.
create table agent.tool_contracts (
    contract_hash text not null,
    organization_id uuid,
    name text not null,
    version int not null,
    spec text not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint tool_contracts_pk primary key (contract_hash)
);
create index tool_contracts_by_name on agent.tool_contracts (name, created_at desc);

create table agent.tool_states (
    organization_id uuid not null,
    tool text not null,
    enabled boolean not null default true,
    withdrawn_at timestamptz,
    changed_by uuid,
    changed_at timestamptz not null default clock_timestamp(),
    constraint tool_states_pk primary key (organization_id, tool)
);
