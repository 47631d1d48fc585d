-- Rules as rows. A change takes the scope's counter first, so that two changes of one scope follow each other.

-- name: live
-- The live rules for an organization, the platform's included, with the versions they have; one row without a rule when there is none.
select coalesce(p.version, 0) as platform_version, coalesce(o.version, 0) as organization_version,
    r.id, r.version, r.organization_id, r.name, r.effect, r.tool, r.side_effects, r.risk, r.egress, r.condition, r.covers_external,
    r.four_eyes, r.reason, r.enabled, r.created_by, r.created_at
from (values (1)) one
left join agent.policy_versions p on p.scope = '00000000-0000-0000-0000-000000000000'
left join agent.policy_versions o on o.scope = %(organization_id)s
left join agent.policy_rules r
    on r.superseded_at is null and (r.organization_id is null or r.organization_id = %(organization_id)s)
order by r.name, r.organization_id

-- name: lock_scope
-- First of every change: one at a time in a scope. Taken later, by the trigger, two savers of one name would wait for each other.
insert into agent.policy_versions as v (scope, version)
values (coalesce(%(organization_id)s, '00000000-0000-0000-0000-000000000000'::uuid), 0)
on conflict (scope) do update set version = v.version

-- name: supersede
-- Second of a save, and all of a retirement: ends the live row of the name. A person must be admin there; whoever administers the database is nobody.
update agent.policy_rules r set superseded_at = clock_timestamp(), superseded_by = %(user_id)s
where r.organization_id is not distinct from %(organization_id)s and r.name = %(name)s and r.superseded_at is null
  and (%(user_id)s::uuid is null or exists (
      select from agent.members m where m.organization_id = r.organization_id and m.user_id = %(user_id)s and m.role = 'admin'
  ))
returning r.id, r.version, r.organization_id, r.name, r.effect, r.tool, r.side_effects, r.risk, r.egress, r.condition, r.covers_external,
    r.four_eyes, r.reason, r.enabled, r.created_by, r.created_at

-- name: insert
-- Third of a save: the next version of the name. No row: the person is no admin there.
insert into agent.policy_rules (
    id, version, organization_id, name, effect, tool, side_effects, risk, egress, condition, covers_external, four_eyes, reason, enabled,
    created_by
)
select coalesce(last.id, gen_random_uuid()), coalesce(last.version, 0) + 1, %(organization_id)s, %(name)s, %(effect)s, %(tool)s,
    %(side_effects)s::text[], %(risk)s::text[], %(egress)s, %(condition)s, %(covers_external)s, %(four_eyes)s, %(reason)s, %(enabled)s,
    %(user_id)s
from (values (1)) one
left join lateral (
    select id, version from agent.policy_rules
    where organization_id is not distinct from %(organization_id)s and name = %(name)s
    order by version desc
    limit 1
) last on true
where %(user_id)s::uuid is null or exists (
    select from agent.members m where m.organization_id = %(organization_id)s and m.user_id = %(user_id)s and m.role = 'admin'
)
returning id, version, organization_id, name, effect, tool, side_effects, risk, egress, condition, covers_external, four_eyes, reason,
    enabled, created_by, created_at

-- name: is_admin
-- Whether a person may change the rules of an organization.
select exists (
    select from agent.members where organization_id = %(organization_id)s and user_id = %(user_id)s and role = 'admin'
) as admin
