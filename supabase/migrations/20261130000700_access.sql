-- Why: least privilege. Row level security on every table and no policy: a user's key reads nothing here, only the service does,
-- and the service filters by organization in every statement.

do $$
declare
    t record;
begin
    for t in select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where n.nspname = 'agent' and c.relkind in ('r', 'p') loop
        execute format('alter table agent.%I enable row level security', t.relname);
    end loop;
end
$$;

revoke all on schema agent from public, anon, authenticated;
revoke all on all tables in schema agent from public, anon, authenticated;
revoke all on all functions in schema agent from public, anon, authenticated;
grant usage on schema agent to service_role;
grant select, insert, update, delete on all tables in schema agent to service_role;
grant usage on all sequences in schema agent to service_role;
grant execute on all functions in schema agent to service_role;
alter default privileges in schema agent grant select, insert, update, delete on tables to service_role;
alter default privileges in schema agent grant usage on sequences to service_role;
