-- Why: an organization's MCP servers are strangers that change as they like. What each one offered is kept as it was seen, what a person
-- approved of that stands beside it, tool by tool, and only the two together offer anything to a run (docs/decisions/0036).

create table agent.mcp_servers (
    organization_id uuid not null,
    -- The word its tools carry in their names; never used again once the server is retired.
    server_id text not null,
    id uuid not null default gen_random_uuid(),
    owner text not null,
    -- A stdio server's command is deployment configuration and in no row: who could write one here would run programs beside the worker.
    transport text not null,
    url text,
    auth_scheme text not null default 'none',
    -- Of the header or the variable.
    auth_name text,
    connection_id uuid,
    token_endpoint text,
    token_scopes text[] not null default '{}',
    -- What the operator said of its tools, of waits and of sizes; checked before it is written.
    settings jsonb not null default '{}',
    state text not null default 'registered',
    revision bigint not null default 1,
    -- The revision that brought endpoint and authentication as they are.
    endpoint_revision bigint not null default 1,
    -- Of the catalog that was seen last. A server that is dialled differently has shown nothing yet.
    offered_hash text,
    resources boolean not null default false,
    -- Probes that failed in a row, and the code of the last one.
    failures int not null default 0,
    reason text,
    probe_at timestamptz,
    seen_at timestamptz,
    verified_at timestamptz,
    activated_at timestamptz,
    degraded_at timestamptz,
    retired_at timestamptz,
    changed_by uuid,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    constraint mcp_servers_pk primary key (organization_id, server_id),
    constraint mcp_servers_id unique (id),
    constraint mcp_servers_connection foreign key (organization_id, connection_id) references agent.connections (organization_id, id),
    constraint mcp_servers_named check (server_id ~ '^[a-z][a-z0-9_]{0,23}$'),
    constraint mcp_servers_owner_known check (owner in ('operator', 'tenant')),
    constraint mcp_servers_transport_known check (transport in ('stdio', 'http')),
    constraint mcp_servers_http_has_url check ((transport = 'http') = (url is not null)),
    constraint mcp_servers_stdio_is_the_operators check (transport = 'http' or owner = 'operator'),
    constraint mcp_servers_scheme_known check (auth_scheme in ('none', 'bearer', 'header', 'oauth2_client', 'env')),
    constraint mcp_servers_scheme_fits_transport check (auth_scheme = 'none' or (auth_scheme = 'env') = (transport = 'stdio')),
    constraint mcp_servers_scheme_has_credential check ((auth_scheme = 'none') = (connection_id is null)),
    constraint mcp_servers_scheme_has_name check ((auth_scheme in ('header', 'env')) = (auth_name is not null)),
    constraint mcp_servers_oauth_has_endpoint check ((auth_scheme = 'oauth2_client') = (token_endpoint is not null)),
    constraint mcp_servers_settings_are_an_object check (jsonb_typeof(settings) = 'object'),
    constraint mcp_servers_state_known check (state in ('registered', 'verified', 'active', 'degraded', 'retired')),
    constraint mcp_servers_revisions check (1 <= endpoint_revision and endpoint_revision <= revision),
    constraint mcp_servers_verified_has_seen check (
        state not in ('verified', 'active', 'degraded') or (offered_hash is not null and verified_at is not null and seen_at is not null)
    ),
    constraint mcp_servers_registered_has_shown_nothing check (
        state <> 'registered' or (offered_hash is null and verified_at is null and activated_at is null)
    ),
    constraint mcp_servers_verified_is_not_active check (state <> 'verified' or activated_at is null),
    constraint mcp_servers_active_has_time check (state not in ('active', 'degraded') or activated_at is not null),
    constraint mcp_servers_degraded_has_time check ((state = 'degraded') = (degraded_at is not null)),
    constraint mcp_servers_retired_has_time check ((state = 'retired') = (retired_at is not null)),
    constraint mcp_servers_probed_while_in_use check ((state in ('active', 'degraded')) = (probe_at is not null)),
    constraint mcp_servers_failure_has_reason check (failures >= 0 and (failures = 0) = (reason is null)),
    constraint mcp_servers_degraded_has_failed check (state <> 'degraded' or failures > 0),
    constraint mcp_servers_reason_is_a_code check (reason ~ '^[a-z_]{1,40}$')
);
create index mcp_servers_probes on agent.mcp_servers (probe_at) where probe_at is not null;
create index mcp_servers_by_connection on agent.mcp_servers (organization_id, connection_id) where connection_id is not null;

-- Everything a server offered at one moment, under the hash of its declarations.
create table agent.mcp_catalogs (
    organization_id uuid not null,
    server_id text not null,
    catalog_hash text not null,
    -- JSON text: jsonb refuses U+0000 and rewrites numbers, and these are a stranger's. What cannot be carried, and names that clash.
    rejected text not null,
    conflicts text not null,
    discovered_at timestamptz not null default clock_timestamp(),
    constraint mcp_catalogs_pk primary key (organization_id, server_id, catalog_hash),
    constraint mcp_catalogs_server foreign key (organization_id, server_id) references agent.mcp_servers (organization_id, server_id)
        on delete cascade
);
create index mcp_catalogs_newest on agent.mcp_catalogs (organization_id, server_id, discovered_at desc);

alter table agent.mcp_servers add constraint mcp_servers_offered foreign key (organization_id, server_id, offered_hash)
    references agent.mcp_catalogs (organization_id, server_id, catalog_hash);

-- One index, its key: with a second one that begins the same way, a planner without statistics may read a server's whole history.
create table agent.mcp_tool_catalog (
    organization_id uuid not null,
    server_id text not null,
    catalog_hash text not null,
    -- As it goes over the wire.
    remote_name text not null,
    -- The platform's name of the tool.
    name text not null,
    declaration_hash text not null,
    -- JSON text, for the same reason.
    declaration text not null,
    -- When the server was first seen without the tool after this catalog.
    withdrawn_at timestamptz,
    constraint mcp_tool_catalog_pk primary key (organization_id, server_id, catalog_hash, remote_name),
    constraint mcp_tool_catalog_catalog foreign key (organization_id, server_id, catalog_hash)
        references agent.mcp_catalogs (organization_id, server_id, catalog_hash) on delete cascade
);

-- What a person let runs be offered: a tool as one catalog declared it. Lines are added only, and the newest one of a tool counts.
create table agent.mcp_approvals (
    id bigint generated always as identity,
    organization_id uuid not null,
    server_id text not null,
    remote_name text not null,
    -- Null: the approval of the lines before is over.
    catalog_hash text,
    approved_by uuid,
    approved_at timestamptz not null default clock_timestamp(),
    constraint mcp_approvals_pk primary key (id),
    constraint mcp_approvals_server foreign key (organization_id, server_id) references agent.mcp_servers (organization_id, server_id),
    constraint mcp_approvals_declaration foreign key (organization_id, server_id, catalog_hash, remote_name)
        references agent.mcp_tool_catalog (organization_id, server_id, catalog_hash, remote_name)
);
create index mcp_approvals_newest on agent.mcp_approvals (organization_id, server_id, remote_name, id desc);

-- The declarations of a server that are approved now. "offset 0" keeps each a look by key: a planner without statistics would compare all
-- approvals with the whole history.
create function agent.mcp_approved(of_organization uuid, of_server text) returns setof agent.mcp_tool_catalog
language sql stable set search_path = '' as $$
    select t.*
    from (
        select distinct on (a.remote_name) a.remote_name, a.catalog_hash from agent.mcp_approvals a
        where a.organization_id = of_organization and a.server_id = of_server
        order by a.remote_name, a.id desc
    ) newest
    cross join lateral (
        select * from agent.mcp_tool_catalog c
        where c.organization_id = of_organization and c.server_id = of_server
          and c.catalog_hash = newest.catalog_hash and c.remote_name = newest.remote_name
        offset 0
    ) t
$$;

-- What a run remembers of a server, beyond any connection and any process.
create table agent.mcp_run_marks (
    run_id uuid not null,
    server_id text not null,
    organization_id uuid not null,
    -- When it used its one re-authentication.
    renewed_at timestamptz,
    -- When it gave up on the server, whose calls are refused from then on.
    gave_up_at timestamptz,
    constraint mcp_run_marks_pk primary key (run_id, server_id),
    constraint mcp_run_marks_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint mcp_run_marks_say_something check (renewed_at is not null or gave_up_at is not null)
);

-- A server moves along its life only, a retired one stays retired, and what was shown under another endpoint counts for nothing.
create function agent.mcp_server_moves() returns trigger
language plpgsql set search_path = '' as $$
begin
    if (new.organization_id, new.server_id, new.id, new.created_at)
        is distinct from (old.organization_id, old.server_id, old.id, old.created_at) then
        raise exception 'a server stays the one it is' using errcode = 'restrict_violation', constraint = 'mcp_servers_identity';
    end if;
    if old.state = 'retired' then
        raise exception 'a retired server stays as it is' using errcode = 'restrict_violation', constraint = 'mcp_servers_retired_stays';
    end if;
    if new.state <> old.state and new.state not in ('registered', 'retired') and (old.state, new.state) not in (
        ('registered', 'verified'), ('verified', 'active'), ('active', 'degraded'), ('degraded', 'active')
    ) then
        raise exception 'a server does not go from % to %', old.state, new.state
            using errcode = 'restrict_violation', constraint = 'mcp_servers_transition';
    end if;
    if (new.owner, new.transport, new.url, new.auth_scheme, new.auth_name, new.connection_id, new.token_endpoint, new.token_scopes)
        is distinct from
        (old.owner, old.transport, old.url, old.auth_scheme, old.auth_name, old.connection_id, old.token_endpoint, old.token_scopes)
        and (new.state <> 'registered' or new.endpoint_revision <> new.revision or new.revision <= old.revision) then
        raise exception 'a server that is dialled differently is registered anew'
            using errcode = 'restrict_violation', constraint = 'mcp_servers_endpoint_moves';
    end if;
    if new.state = 'registered' and old.state <> 'registered' and new.endpoint_revision = old.endpoint_revision then
        raise exception 'a server goes back only when it is dialled differently'
            using errcode = 'restrict_violation', constraint = 'mcp_servers_transition';
    end if;
    new.updated_at := clock_timestamp();
    return new;
end
$$;
create trigger mcp_servers_moves before update on agent.mcp_servers for each row execute function agent.mcp_server_moves();

-- A declaration is written once. One time is stamped beside it, once.
create function agent.mcp_declaration_stands() returns trigger
language plpgsql set search_path = '' as $$
begin
    if to_jsonb(new) - 'withdrawn_at' is distinct from to_jsonb(old) - 'withdrawn_at' or old.withdrawn_at is not null then
        raise exception 'a declaration is history; when it was withdrawn is stamped once, and nothing else changes'
            using errcode = 'restrict_violation', constraint = 'mcp_tool_catalog_is_history';
    end if;
    return new;
end
$$;
create trigger mcp_tool_catalog_stands before update on agent.mcp_tool_catalog
    for each row execute function agent.mcp_declaration_stands();
create trigger mcp_catalogs_append_only before update on agent.mcp_catalogs for each row execute function agent.refuse_change();
create trigger mcp_approvals_append_only before update or delete on agent.mcp_approvals
    for each row execute function agent.refuse_change();

alter table agent.mcp_servers enable row level security;
alter table agent.mcp_catalogs enable row level security;
alter table agent.mcp_tool_catalog enable row level security;
alter table agent.mcp_approvals enable row level security;
alter table agent.mcp_run_marks enable row level security;
revoke all on agent.mcp_servers, agent.mcp_catalogs, agent.mcp_tool_catalog, agent.mcp_approvals, agent.mcp_run_marks
    from public, anon, authenticated;
grant select, insert, update, delete
    on agent.mcp_servers, agent.mcp_catalogs, agent.mcp_tool_catalog, agent.mcp_approvals, agent.mcp_run_marks to service_role;
grant usage on all sequences in schema agent to service_role;
revoke all on function agent.mcp_server_moves(), agent.mcp_declaration_stands(), agent.mcp_approved(uuid, text) from public, anon, authenticated;
grant execute on function agent.mcp_server_moves(), agent.mcp_declaration_stands(), agent.mcp_approved(uuid, text) to service_role;
