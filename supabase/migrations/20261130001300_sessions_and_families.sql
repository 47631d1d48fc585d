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
