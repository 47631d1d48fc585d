-- Tools as the database knows them: contracts that runs froze or the deployment published, and their live state.

-- name: publish
-- Stores contracts of this deployment, each once.
insert into agent.tool_contracts (contract_hash, name, version, spec)
select c.contract_hash, c.name, c.version, c.spec
from jsonb_to_recordset(%(contracts)s::jsonb) as c(contract_hash text, name text, version int, spec text)
on conflict (contract_hash) do nothing

-- name: list
-- The newest contract of each tool, or of one, with its live state in an organization and the life of that version.
select distinct on (c.name) c.name, c.version, c.contract_hash, c.spec, c.created_at, coalesce(s.enabled, true) as enabled, s.withdrawn_at,
    coalesce(l.state, 'active') as release, l.in_flight
from agent.tool_contracts c
left join agent.tool_states s on s.tool = c.name and s.organization_id = %(organization_id)s
left join agent.tool_releases l
    on l.tool = c.name and l.version = c.version and (l.organization_id is null or l.organization_id = %(organization_id)s)
where (c.organization_id is null or c.organization_id = %(organization_id)s) and (%(tool)s::text is null or c.name = %(tool)s)
order by c.name, c.created_at desc

-- name: versions
-- Every version of a tool that was ever stored, newest first, with its life.
select c.version, min(c.created_at) as first_seen, array_agg(c.contract_hash order by c.created_at desc) as contract_hashes,
    coalesce(l.state, 'active') as release, l.in_flight, l.deprecated_at, l.revoked_at
from agent.tool_contracts c
left join agent.tool_releases l
    on l.tool = c.name and l.version = c.version and (l.organization_id is null or l.organization_id = %(organization_id)s)
where c.name = %(tool)s and (c.organization_id is null or c.organization_id = %(organization_id)s)
group by c.version, l.state, l.in_flight, l.deprecated_at, l.revoked_at
order by c.version desc

-- name: changes
-- Who switched or released what of a tool, and when, newest first.
select change, version, in_flight, changed_by, changed_at
from agent.tool_changes
where tool = %(tool)s and (organization_id is null or organization_id = %(organization_id)s)
order by id desc
limit %(limit)s

-- name: live
-- What of an organization's tools is not as it was declared: switched off, or a version that is not active any more.
select tool, null::int as version, 'off' as state from agent.tool_states
where organization_id = %(organization_id)s and (not enabled or withdrawn_at is not null)
union all
select tool, version, state from agent.tool_releases
where organization_id is null or organization_id = %(organization_id)s

-- name: set_state
-- Enables or disables a tool in an organization, and keeps who did; nothing when it is so already. A person must be admin there.
with may as (
    select %(user_id)s::uuid is null or exists (
        select from agent.members m where m.organization_id = %(organization_id)s and m.user_id = %(user_id)s and m.role = 'admin'
    ) as permitted, exists (
        select from agent.tool_contracts c
        where c.name = %(tool)s and (c.organization_id is null or c.organization_id = %(organization_id)s)
    ) as known
), changed as (
    insert into agent.tool_states as s (organization_id, tool, enabled, changed_by)
    select %(organization_id)s, %(tool)s, %(enabled)s, %(user_id)s from may
    where permitted and known
      and (not %(enabled)s or exists (
          select from agent.tool_states x where x.organization_id = %(organization_id)s and x.tool = %(tool)s
      ))
    on conflict (organization_id, tool) do update set
        enabled = excluded.enabled, changed_by = excluded.changed_by, changed_at = clock_timestamp()
    where s.enabled is distinct from excluded.enabled
    returning s.organization_id, s.tool, s.enabled, s.changed_by
), noted as (
    insert into agent.tool_changes (organization_id, tool, change, changed_by)
    select organization_id, tool, case when enabled then 'enabled' else 'disabled' end, changed_by from changed
)
select permitted, known, exists (select from changed) as changed from may

-- name: release
-- Moves a version of a tool on, and keeps who did: active to deprecated or revoked, deprecated to revoked, and from finish to refuse.
with may as (
    select %(owner)s::uuid is null or %(user_id)s::uuid is null or exists (
        select from agent.members m where m.organization_id = %(owner)s and m.user_id = %(user_id)s and m.role = 'admin'
    ) as permitted, exists (
        select from agent.tool_contracts c
        where c.name = %(tool)s and c.version = %(version)s and (c.organization_id is null or c.organization_id = %(owner)s)
    ) as known
), changed as (
    insert into agent.tool_releases as l (organization_id, tool, version, state, in_flight, deprecated_at, revoked_at)
    select %(owner)s, %(tool)s, %(version)s, %(state)s, %(in_flight)s,
        case when %(state)s = 'deprecated' then clock_timestamp() end, case when %(state)s = 'revoked' then clock_timestamp() end
    from may
    where permitted and known
    on conflict (tool, version, organization_id) do update set
        state = excluded.state, in_flight = excluded.in_flight, revoked_at = coalesce(l.revoked_at, excluded.revoked_at)
    where excluded.state = 'revoked'
      and (l.state = 'deprecated' or (l.in_flight = 'finish' and excluded.in_flight = 'refuse'))
    returning l.organization_id, l.tool, l.version, l.state, l.in_flight
), noted as (
    insert into agent.tool_changes (organization_id, tool, version, change, in_flight, changed_by)
    select organization_id, tool, version, state, in_flight, %(user_id)s from changed
)
select permitted, known, exists (select from changed) as changed from may

-- name: release_now
-- Where a version of a tool is in its life.
select state, in_flight from agent.tool_releases
where tool = %(tool)s and version = %(version)s and organization_id is not distinct from %(owner)s

-- name: grants
-- Which definition has which tool, or had it, by name.
select definition, tool, state, granted_by, created_at, changed_by, changed_at
from agent.grants
where organization_id = %(organization_id)s and (%(definition)s::text is null or definition = %(definition)s)
order by definition, tool

-- name: set_grant
-- Takes a tool from a definition, or gives it back, and keeps who did; nothing when it is so already. A person must be admin there.
with may as (
    select %(user_id)s::uuid is null or exists (
        select from agent.members m where m.organization_id = %(organization_id)s and m.user_id = %(user_id)s and m.role = 'admin'
    ) as permitted, exists (
        select from agent.grants g
        where g.organization_id = %(organization_id)s and g.definition = %(definition)s and g.tool = %(tool)s
    ) as known
), changed as (
    update agent.grants g set
        state = %(state)s, revoked_at = case when %(state)s = 'revoked' then clock_timestamp() end,
        changed_by = %(user_id)s, changed_at = clock_timestamp()
    from may
    where may.permitted and g.organization_id = %(organization_id)s and g.definition = %(definition)s and g.tool = %(tool)s
      and g.state <> %(state)s
    returning g.tool
)
select permitted, known, exists (select from changed) as changed from may
