-- Why: a person talks with agents in sessions, whose later runs begin with what the earlier ones said; and a run may start others, which
-- see, spend and outlive no more than it does and are stopped with it.

alter table agent.runs
    -- The caller's own id of a conversation; one of each organization and person.
    add column session_id text,
    add column cancel_reason text,
    add constraint runs_session_named check (length(session_id) between 1 and 200),
    add constraint runs_depth_bounded check (depth between 0 and 5),
    add constraint runs_root_has_no_parent check ((parent_run_id is null) = (depth = 0)),
    add constraint runs_session_of_root check (session_id is null or parent_run_id is null);
create index runs_of_session on agent.runs (organization_id, session_id, created_at desc) where session_id is not null;
create index runs_by_parent on agent.runs (parent_run_id) where parent_run_id is not null;

-- Whether every run above has a live grant of a tool: what is taken from a run is taken from those it started, at their next call. A
-- parent that cannot be found grants nothing. A function, so that a run without a parent does not even plan it.
create function agent.granted_above(of_organization uuid, of_parent uuid, used text) returns boolean
language plpgsql stable set search_path = '' as $$
begin
    return (
        with recursive above as (
            select r.parent_run_id, r.definition_name from agent.runs r where r.id = of_parent and r.organization_id = of_organization
            union all
            select p.parent_run_id, p.definition_name
            from above a join agent.runs p on p.id = a.parent_run_id and p.organization_id = of_organization
        )
        select coalesce(bool_and(exists (
            select from agent.grants g
            where g.organization_id = of_organization and g.definition = a.definition_name and g.tool = used and g.state = 'active'
        )), false)
        from above a
    );
end
$$;
revoke all on function agent.granted_above(uuid, uuid, text) from public, anon, authenticated;
grant execute on function agent.granted_above(uuid, uuid, text) to service_role;
