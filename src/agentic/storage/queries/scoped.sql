-- name: as_role
-- Makes the rest of the transaction what Supabase's interface makes of a token: its role, its claims, times in UTC.
select set_config('role', %(role)s, true), set_config('request.jwt.claims', %(claims)s, true), set_config('timezone', 'UTC', true)

-- name: table_of_nobody
-- What a store of rows that belong to no organization has to know of its table: columns, row security, and whether users reach it.
select
    c.relrowsecurity as secured,
    array(
        select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    ) as columns,
    has_any_column_privilege('anon', c.oid, 'select, insert, update')
        or has_any_column_privilege('authenticated', c.oid, 'select, insert, update')
        or has_table_privilege('anon', c.oid, 'delete')
        or has_table_privilege('authenticated', c.oid, 'delete') as open_to_users
from pg_class c
where c.relnamespace = 'public'::regnamespace and c.relname = %(table)s and c.relkind in ('r', 'p')
