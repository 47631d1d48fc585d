-- Who belongs to an organization, and in which role.

-- name: list
-- The members of an organization.
select user_id, role, created_at from agent.members where organization_id = %(organization_id)s

-- name: role
-- The role of a person in an organization.
select role from agent.members where organization_id = %(organization_id)s and user_id = %(user_id)s

-- name: put
-- Makes a person a member, or changes the role.
insert into agent.members (organization_id, user_id, role) values (%(organization_id)s, %(user_id)s, %(role)s)
on conflict (organization_id, user_id) do update set role = excluded.role
