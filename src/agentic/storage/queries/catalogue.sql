-- Tools as the database knows them: contracts that runs froze or the deployment published, and their live state.

-- name: publish
-- Stores contracts of this deployment, each once.
insert into agent.tool_contracts (contract_hash, name, version, spec)
select c.contract_hash, c.name, c.version, c.spec
from jsonb_to_recordset(%(contracts)s::jsonb) as c(contract_hash text, name text, version int, spec text)
on conflict (contract_hash) do nothing

-- name: list
-- The newest contract of each tool, with its live state in an organization.
select distinct on (c.name) c.name, c.version, c.contract_hash, c.spec, c.created_at, coalesce(s.enabled, true) as enabled, s.withdrawn_at
from agent.tool_contracts c
left join agent.tool_states s on s.tool = c.name and s.organization_id = %(organization_id)s
where c.organization_id is null or c.organization_id = %(organization_id)s
order by c.name, c.created_at desc

-- name: set_state
-- Enables or disables a tool in an organization.
insert into agent.tool_states (organization_id, tool, enabled, changed_by) values (%(organization_id)s, %(tool)s, %(enabled)s, %(user_id)s)
on conflict (organization_id, tool) do update set enabled = excluded.enabled, changed_by = excluded.changed_by, changed_at = clock_timestamp()

-- name: set_grant
-- Gives or takes a tool of a definition.
insert into agent.grants (organization_id, definition, tool, granted_by, state, revoked_at)
values (%(organization_id)s, %(definition)s, %(tool)s, %(user_id)s, %(state)s, case when %(state)s = 'revoked' then clock_timestamp() end)
on conflict (organization_id, definition, tool) do update set state = excluded.state, revoked_at = excluded.revoked_at
