-- name: as_role
-- Makes the rest of the transaction what Supabase's interface makes of a token: its role, its claims, times in UTC.
select set_config('role', %(role)s, true), set_config('request.jwt.claims', %(claims)s, true), set_config('timezone', 'UTC', true)
