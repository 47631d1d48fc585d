-- Why: a version of a tool has a life of its own: active, deprecated (new runs do not get it), revoked (runs that have it finish or are
-- refused). And every change of what may be called is kept with who made it and when, in the same statement as the change.

create table agent.tool_releases (
    -- Null: a tool written as code, for every organization. A tool that arrived at run time belongs to the organization it arrived in.
    organization_id uuid,
    tool text not null,
    version int not null,
    state text not null,
    in_flight text,
    deprecated_at timestamptz,
    revoked_at timestamptz,
    constraint tool_releases_once unique nulls not distinct (tool, version, organization_id),
    constraint tool_releases_version_positive check (version > 0),
    -- A version without a row is active; none goes back to that.
    constraint tool_releases_state_known check (state in ('deprecated', 'revoked')),
    constraint tool_releases_in_flight_known check (in_flight in ('finish', 'refuse')),
    constraint tool_releases_deprecated_has_time check (state <> 'deprecated' or deprecated_at is not null),
    constraint tool_releases_revoked_has_time_and_rule check (
        (state = 'revoked') = (revoked_at is not null) and (state = 'revoked') = (in_flight is not null)
    ),
    -- Which makes at most one row count for a call, without an order between two.
    constraint tool_releases_owner check ((tool like 'mcp.%' or tool like 'device.%') = (organization_id is not null))
);

create table agent.tool_changes (
    id bigint generated always as identity,
    organization_id uuid,
    tool text not null,
    version int,
    change text not null,
    in_flight text,
    changed_by uuid,
    changed_at timestamptz not null default clock_timestamp(),
    constraint tool_changes_pk primary key (id),
    constraint tool_changes_known check (change in ('enabled', 'disabled', 'deprecated', 'revoked')),
    -- Switching is about the tool, a release about one version of it.
    constraint tool_changes_version_for_releases check ((change in ('deprecated', 'revoked')) = (version is not null))
);
create index tool_changes_by_tool on agent.tool_changes (tool, id desc);

create trigger tool_changes_append_only before update or delete on agent.tool_changes for each row execute function agent.refuse_change();

alter table agent.tool_releases enable row level security;
alter table agent.tool_changes enable row level security;
revoke all on agent.tool_releases, agent.tool_changes from public, anon, authenticated;
grant select, insert, update, delete on agent.tool_releases, agent.tool_changes to service_role;
grant usage on all sequences in schema agent to service_role;
