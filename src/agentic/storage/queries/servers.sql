-- MCP servers of organizations. A change takes the server's row first, so that changes of one server follow each other and the
-- statements behind the lock see all that was committed before it. What comes of a change for calls is settled by its last statement.

-- name: lock
-- First of a change: the server as it is, and whether the person is an admin there; whoever administers the database is nobody.
select s.*, %(user_id)s::uuid is null or exists (
    select from agent.members m where m.organization_id = s.organization_id and m.user_id = %(user_id)s and m.role = 'admin'
) as permitted
from agent.mcp_servers s
where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
for update of s

-- name: register
-- A new server. No row of it: the name is taken, and by what if that was committed before, the connection is none for its scheme, or the
-- person may not.
with may as (
    select %(user_id)s::uuid is null or exists (
        select from agent.members m where m.organization_id = %(organization_id)s and m.user_id = %(user_id)s and m.role = 'admin'
    ) as permitted, c.kind, c.state as connection_state, c.token_endpoint as connection_endpoint, c.provider as connection_provider,
    case %(auth_scheme)s
        when 'none' then %(connection_id)s::uuid is null
        when 'oauth2_client' then c.kind = 'oauth_client' and c.token_endpoint = %(token_endpoint)s
        else c.kind = 'api_key'
    end and (c.id is null or c.state <> 'revoked' and c.provider in ('mcp', 'mcp.' || %(server_id)s)) as fits
    from (values (1)) one
    left join agent.connections c on c.organization_id = %(organization_id)s and c.id = %(connection_id)s
), added as (
    insert into agent.mcp_servers (
        organization_id, server_id, owner, transport, url, auth_scheme, auth_name, connection_id, token_endpoint, token_scopes, settings,
        changed_by
    )
    select %(organization_id)s, %(server_id)s, %(owner)s, %(transport)s, %(url)s, %(auth_scheme)s, %(auth_name)s, %(connection_id)s,
        %(token_endpoint)s, %(token_scopes)s, %(settings)s, %(user_id)s
    from may where permitted and fits
    on conflict (organization_id, server_id) do nothing
    returning *
)
select may.permitted, may.kind as connection_kind, may.connection_state, may.connection_endpoint, may.connection_provider, may.fits,
    (select o.state from agent.mcp_servers o where o.organization_id = %(organization_id)s and o.server_id = %(server_id)s) as taken_by,
    added.*
from may left join added on true

-- name: reconfigure
-- Another configuration in place of the one of a revision. One that is dialled differently has shown nothing and is registered anew; only
-- then its connection has to fit, because one that was revoked since keeps nobody from saying how long to wait.
with may as (
    select %(user_id)s::uuid is null or exists (
        select from agent.members m where m.organization_id = %(organization_id)s and m.user_id = %(user_id)s and m.role = 'admin'
    ) as permitted, c.kind, c.state as connection_state, c.token_endpoint as connection_endpoint, c.provider as connection_provider,
    case %(auth_scheme)s
        when 'none' then %(connection_id)s::uuid is null
        when 'oauth2_client' then c.kind = 'oauth_client' and c.token_endpoint = %(token_endpoint)s
        else c.kind = 'api_key'
    end and (c.id is null or c.state <> 'revoked' and c.provider in ('mcp', 'mcp.' || %(server_id)s)) as fits
    from (values (1)) one
    left join agent.connections c on c.organization_id = %(organization_id)s and c.id = %(connection_id)s
), moved as (
    select (s.owner, s.transport, s.url, s.auth_scheme, s.auth_name, s.connection_id, s.token_endpoint, s.token_scopes)
        is distinct from (
            %(owner)s::text, %(transport)s::text, %(url)s::text, %(auth_scheme)s::text, %(auth_name)s::text, %(connection_id)s::uuid,
            %(token_endpoint)s::text, %(token_scopes)s::text[]
        ) as moved
    from agent.mcp_servers s
    where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
), changed as (
    update agent.mcp_servers s set
        owner = %(owner)s, transport = %(transport)s, url = %(url)s, auth_scheme = %(auth_scheme)s, auth_name = %(auth_name)s,
        connection_id = %(connection_id)s, token_endpoint = %(token_endpoint)s, token_scopes = %(token_scopes)s, settings = %(settings)s,
        changed_by = %(user_id)s, revision = s.revision + 1,
        endpoint_revision = case when moved then s.revision + 1 else s.endpoint_revision end,
        state = case when moved then 'registered' else s.state end,
        offered_hash = case when not moved then s.offered_hash end,
        resources = s.resources and not moved,
        failures = case when moved then 0 else s.failures end,
        reason = case when not moved then s.reason end,
        probe_at = case when not moved then s.probe_at end,
        seen_at = case when not moved then s.seen_at end,
        verified_at = case when not moved then s.verified_at end,
        activated_at = case when not moved then s.activated_at end,
        degraded_at = case when not moved then s.degraded_at end
    from may, moved
    where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
      and s.revision = %(revision)s and s.state <> 'retired' and permitted and (fits or not moved)
    returning s.server_id
)
select may.permitted, may.kind as connection_kind, may.connection_state, may.connection_endpoint, may.connection_provider,
    may.fits or not coalesce((select moved from moved), true) as fits, exists (select from changed) as changed
from may

-- name: classify
-- What a person says of all tools of a server, or of one, whose own class ends with a null. Said of different tools at once, both stand.
with said as (
    select s.settings || case
        when %(remote_name)s::text is null then jsonb_build_object('classification', %(said)s::jsonb)
        when %(said)s::jsonb is null then jsonb_build_object('per_tool', coalesce(s.settings -> 'per_tool', '{}') - %(remote_name)s::text)
        else jsonb_build_object('per_tool', coalesce(s.settings -> 'per_tool', '{}') || jsonb_build_object(%(remote_name)s::text, %(said)s::jsonb))
    end as settings
    from agent.mcp_servers s
    where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
)
update agent.mcp_servers s set settings = said.settings, changed_by = %(user_id)s, revision = s.revision + 1
from said
where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s and s.state <> 'retired'
  and s.settings is distinct from said.settings
  and (%(user_id)s::uuid is null or exists (
      select from agent.members m where m.organization_id = s.organization_id and m.user_id = %(user_id)s and m.role = 'admin'
  ))
returning s.server_id

-- name: observe
-- What a server offers now. A catalog that is known is not written again; names that are not in it any more are stamped.
with dialled as (
    select * from agent.mcp_servers s
    where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
      and s.state <> 'retired' and s.endpoint_revision = %(endpoint_revision)s
), generation as (
    insert into agent.mcp_catalogs (organization_id, server_id, catalog_hash, rejected, conflicts)
    select organization_id, server_id, %(catalog_hash)s, %(rejected)s, %(conflicts)s from dialled
    on conflict (organization_id, server_id, catalog_hash) do nothing
    returning organization_id, server_id, catalog_hash
), declared as (
    insert into agent.mcp_tool_catalog (organization_id, server_id, catalog_hash, remote_name, name, declaration_hash, declaration)
    select g.organization_id, g.server_id, g.catalog_hash, t.remote_name, t.name, t.declaration_hash, t.declaration
    from generation g, json_to_recordset(%(tools)s::json) as t(remote_name text, name text, declaration_hash text, declaration text)
), gone as (
    update agent.mcp_tool_catalog t set withdrawn_at = clock_timestamp()
    from dialled d
    where t.organization_id = d.organization_id and t.server_id = d.server_id and t.withdrawn_at is null
      and d.offered_hash is distinct from %(catalog_hash)s and not t.remote_name = any (%(remote_names)s::text[])
), seen as (
    update agent.mcp_servers s set
        state = case s.state when 'registered' then 'verified' when 'degraded' then 'active' else s.state end,
        offered_hash = %(catalog_hash)s, resources = %(resources)s,
        failures = 0, reason = null, degraded_at = null, seen_at = clock_timestamp(),
        verified_at = coalesce(s.verified_at, clock_timestamp()),
        probe_at = case when s.state in ('active', 'degraded') then clock_timestamp() + interval '1 hour' end,
        revision = s.revision + case
            when s.state in ('registered', 'degraded') or s.offered_hash is distinct from %(catalog_hash)s or s.resources <> %(resources)s
            then 1 else 0 end
    from dialled d
    where s.organization_id = d.organization_id and s.server_id = d.server_id
    returning s.server_id
)
select exists (select from seen) as seen, exists (select from generation) as new_generation

-- name: forget_catalogs
-- After an observation: of a server that changes all the time, the newest catalogs are kept, the one of now, and those with an approval.
delete from agent.mcp_catalogs c
using agent.mcp_servers s
where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
  and c.organization_id = s.organization_id and c.server_id = s.server_id and c.catalog_hash is distinct from s.offered_hash
  and c.discovered_at < (
      select n.discovered_at from agent.mcp_catalogs n
      where n.organization_id = s.organization_id and n.server_id = s.server_id
      order by n.discovered_at desc
      offset %(kept)s - 1 limit 1
  )
  and not exists (
      select from agent.mcp_approvals a
      where a.organization_id = c.organization_id and a.server_id = c.server_id and a.catalog_hash = c.catalog_hash
  )

-- name: unreachable
-- A probe that failed. No row: it dialled another endpoint than the one of now, or the server is retired.
update agent.mcp_servers s set
    failures = s.failures + 1, reason = %(reason)s,
    state = case when s.state = 'active' and s.failures + 1 >= %(degrade_after)s then 'degraded' else s.state end,
    degraded_at = case when s.state = 'active' and s.failures + 1 >= %(degrade_after)s then clock_timestamp() else s.degraded_at end,
    revision = s.revision + case when s.state = 'active' and s.failures + 1 >= %(degrade_after)s then 1 else 0 end,
    probe_at = case when s.state in ('active', 'degraded') then least(s.probe_at, clock_timestamp() + interval '5 minutes') end
where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
  and s.endpoint_revision = %(endpoint_revision)s and s.state <> 'retired'
returning s.*

-- name: activate
-- Activates a verified server with the catalog that the person was shown: approves all of it, and nothing else.
with activated as (
    update agent.mcp_servers s set
        state = 'active', activated_at = clock_timestamp(), probe_at = clock_timestamp() + interval '1 hour',
        revision = s.revision + 1, changed_by = %(user_id)s
    where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
      and s.state = 'verified' and s.offered_hash = %(offered_hash)s
      and (%(user_id)s::uuid is null or exists (
          select from agent.members m where m.organization_id = s.organization_id and m.user_id = %(user_id)s and m.role = 'admin'
      ))
    returning s.organization_id, s.server_id, s.offered_hash
), approved as (
    insert into agent.mcp_approvals (organization_id, server_id, remote_name, catalog_hash, approved_by)
    select t.organization_id, t.server_id, t.remote_name, t.catalog_hash, %(user_id)s
    from activated s
    join agent.mcp_tool_catalog t
        on t.organization_id = s.organization_id and t.server_id = s.server_id and t.catalog_hash = s.offered_hash
), forgotten as (
    insert into agent.mcp_approvals (organization_id, server_id, remote_name, catalog_hash, approved_by)
    select s.organization_id, s.server_id, a.remote_name, null, %(user_id)s
    from activated s, agent.mcp_approved(%(organization_id)s, %(server_id)s) a
    where not exists (
        select from agent.mcp_tool_catalog t
        where t.organization_id = s.organization_id and t.server_id = s.server_id and t.catalog_hash = s.offered_hash
          and t.remote_name = a.remote_name
    )
)
select exists (select from activated) as activated

-- name: approve
-- Approves tools as the catalog of now declares them; those that are approved so already stay as they are. All of them, or none.
with server as (
    select s.organization_id, s.server_id, s.offered_hash from agent.mcp_servers s
    where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
      and s.state in ('active', 'degraded') and s.offered_hash = %(offered_hash)s
      and (%(user_id)s::uuid is null or exists (
          select from agent.members m where m.organization_id = s.organization_id and m.user_id = %(user_id)s and m.role = 'admin'
      ))
), approved as (
    select remote_name, declaration_hash from agent.mcp_approved(%(organization_id)s, %(server_id)s)
), wanted as (
    select t.organization_id, t.server_id, t.remote_name, t.catalog_hash, t.declaration_hash
    from server s
    join agent.mcp_tool_catalog t
        on t.organization_id = s.organization_id and t.server_id = s.server_id and t.catalog_hash = s.offered_hash
    where %(remote_names)s::text[] is null or t.remote_name = any (%(remote_names)s::text[])
), unknown as (
    select n.remote_name from unnest(%(remote_names)s::text[]) n(remote_name)
    where not exists (select from wanted w where w.remote_name = n.remote_name)
), anew as (
    insert into agent.mcp_approvals (organization_id, server_id, remote_name, catalog_hash, approved_by)
    select w.organization_id, w.server_id, w.remote_name, w.catalog_hash, %(user_id)s
    from wanted w
    where not exists (select from unknown)
      and not exists (select from approved a where a.remote_name = w.remote_name and a.declaration_hash = w.declaration_hash)
    returning remote_name
), forgotten as (
    insert into agent.mcp_approvals (organization_id, server_id, remote_name, catalog_hash, approved_by)
    select s.organization_id, s.server_id, a.remote_name, null, %(user_id)s
    from server s, approved a
    where %(remote_names)s::text[] is null and not exists (select from wanted w where w.remote_name = a.remote_name)
    returning remote_name
), counted as (
    update agent.mcp_servers s set revision = s.revision + 1, changed_by = %(user_id)s
    from server
    where s.organization_id = server.organization_id and s.server_id = server.server_id
      and (exists (select from anew) or exists (select from forgotten))
)
select exists (select from server) as open, array(select remote_name from unknown order by 1) as unknown,
    array(select remote_name from anew order by 1) as anew

-- name: retire
-- The end of a server. No row: it is retired already, or the person may not.
update agent.mcp_servers s set
    state = 'retired', retired_at = clock_timestamp(), degraded_at = null, probe_at = null, revision = s.revision + 1, changed_by = %(user_id)s
where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s and s.state <> 'retired'
  and (%(user_id)s::uuid is null or exists (
      select from agent.members m where m.organization_id = s.organization_id and m.user_id = %(user_id)s and m.role = 'admin'
  ))
returning s.server_id

-- name: settle_tools
-- Last of a change: a tool of the server that may be in a run is withdrawn unless the server is in use, offers it, and it is approved. The
-- preflight of the next call reads it. Two remote names may have meant one tool, at different times.
with server as (
    select s.organization_id, s.server_id, s.offered_hash, s.resources, s.state in ('active', 'degraded') as used
    from agent.mcp_servers s
    where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
), known as (
    select distinct a.organization_id, t.name, a.remote_name
    from (
        select distinct x.organization_id, x.server_id, x.remote_name, x.catalog_hash
        from server s
        join agent.mcp_approvals x on x.organization_id = s.organization_id and x.server_id = s.server_id
        where x.catalog_hash is not null
    ) a
    cross join lateral (
        select c.name from agent.mcp_tool_catalog c
        where c.organization_id = a.organization_id and c.server_id = a.server_id
          and c.catalog_hash = a.catalog_hash and c.remote_name = a.remote_name
        offset 0
    ) t
), available as (
    select o.remote_name
    from server s
    join agent.mcp_tool_catalog o
        on o.organization_id = s.organization_id and o.server_id = s.server_id and o.catalog_hash = s.offered_hash
    join agent.mcp_approved(%(organization_id)s, %(server_id)s) a on a.remote_name = o.remote_name
    where s.used
), settled as (
    select organization_id, name, bool_and(withdrawn) as withdrawn
    from (
        select k.organization_id, k.name, v.remote_name is null as withdrawn
        from known k
        left join available v on v.remote_name = k.remote_name
        union all
        select organization_id, 'mcp.' || server_id || '.read_resource', not (used and resources) from server
    ) tools
    group by organization_id, name
)
insert into agent.tool_states as x (organization_id, tool, withdrawn_at)
select w.organization_id, w.name, case when w.withdrawn then clock_timestamp() end
from settled w
where w.withdrawn or exists (select from agent.tool_states y where y.organization_id = w.organization_id and y.tool = w.name)
order by w.name
on conflict (organization_id, tool) do update set withdrawn_at = excluded.withdrawn_at
where (x.withdrawn_at is null) <> (excluded.withdrawn_at is null)

-- name: read
-- One server.
select * from agent.mcp_servers where organization_id = %(organization_id)s and server_id = %(server_id)s

-- name: servers
-- The servers of an organization, the retired ones last.
select * from agent.mcp_servers
where organization_id = %(organization_id)s
order by state = 'retired', server_id collate "C"

-- name: started_for_somebody
-- Whether any organization has a stdio server of this name that is not retired. Asked for what stands in the deployment's file, by whoever
-- administers the deployment; says no more than that.
select exists (select from agent.mcp_servers where server_id = %(server_id)s and transport = 'stdio' and state <> 'retired') as started

-- name: revisions
-- Which servers may be offered, and the number that grows when that changes. Asked before every segment.
select server_id, revision from agent.mcp_servers
where organization_id = %(organization_id)s and state in ('active', 'degraded')

-- name: standings
-- Servers with what they offer now and what was approved of that, all of one moment.
select s.*, o.rejected, o.conflicts,
    array(
        select t.declaration from agent.mcp_tool_catalog t
        where t.organization_id = s.organization_id and t.server_id = s.server_id and t.catalog_hash = s.offered_hash
        order by t.name collate "C"
    ) as offered,
    array(select a.declaration from agent.mcp_approved(s.organization_id, s.server_id) a) as approved
from agent.mcp_servers s
left join agent.mcp_catalogs o
    on o.organization_id = s.organization_id and o.server_id = s.server_id and o.catalog_hash = s.offered_hash
where s.organization_id = %(organization_id)s and s.server_id = any (%(server_ids)s)
order by s.server_id collate "C"

-- name: generations
-- The catalogs of a server that are kept, newest first.
select catalog_hash, discovered_at from agent.mcp_catalogs
where organization_id = %(organization_id)s and server_id = %(server_id)s
order by discovered_at desc, catalog_hash

-- name: declarations
-- Every declaration of one tool that is kept, newest first, with the last approval of that very declaration; one row without any.
select t.catalog_hash, t.declaration, c.discovered_at, t.withdrawn_at, a.approved_at, a.approved_by
from agent.mcp_servers s
left join agent.mcp_tool_catalog t
    on t.organization_id = s.organization_id and t.server_id = s.server_id and t.remote_name = %(remote_name)s
left join agent.mcp_catalogs c
    on c.organization_id = t.organization_id and c.server_id = t.server_id and c.catalog_hash = t.catalog_hash
left join lateral (
    select x.approved_at, x.approved_by
    from agent.mcp_approvals x
    join agent.mcp_tool_catalog d
        on d.organization_id = x.organization_id and d.server_id = x.server_id
        and d.catalog_hash = x.catalog_hash and d.remote_name = x.remote_name
    where x.organization_id = t.organization_id and x.server_id = t.server_id and x.remote_name = t.remote_name
      and d.declaration_hash = t.declaration_hash
    order by x.id desc
    limit 1
) a on true
where s.organization_id = %(organization_id)s and s.server_id = %(server_id)s
order by c.discovered_at desc
limit %(limit)s

-- name: due
-- Takes servers of any organization whose probe is due, longest first. Each is put off, so that nobody else takes it.
with due as materialized (
    select organization_id, server_id, probe_at from agent.mcp_servers
    where probe_at <= clock_timestamp()
    order by probe_at
    limit %(limit)s
    for update skip locked
), taken as (
    update agent.mcp_servers s set probe_at = clock_timestamp() + interval '5 minutes'
    from due
    where s.organization_id = due.organization_id and s.server_id = due.server_id
)
select organization_id, server_id from due order by probe_at

-- name: unauthorized
-- Whether a run gave up on a server.
select exists (
    select from agent.mcp_run_marks where run_id = %(run_id)s and server_id = %(server_id)s and gave_up_at is not null
) as gave_up

-- name: take_renewal
-- Takes the one re-authentication of a run for a server. No row: it is taken, or there is no such run.
insert into agent.mcp_run_marks as m (run_id, server_id, organization_id, renewed_at)
select r.id, %(server_id)s, r.organization_id, clock_timestamp() from agent.runs r where r.id = %(run_id)s
on conflict (run_id, server_id) do update set renewed_at = excluded.renewed_at where m.renewed_at is null
returning m.run_id

-- name: give_up
-- Lets no later call of a run dial a server.
insert into agent.mcp_run_marks as m (run_id, server_id, organization_id, gave_up_at)
select r.id, %(server_id)s, r.organization_id, clock_timestamp() from agent.runs r where r.id = %(run_id)s
on conflict (run_id, server_id) do update set gave_up_at = excluded.gave_up_at where m.gave_up_at is null
