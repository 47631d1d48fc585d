-- Why: the bytes of an artifact may stand in an object store. Its row then names the place and holds no body; a release that knows
-- no places goes on writing bodies.
alter table agent.artifacts
    alter column body drop not null,
    add column place text,
    add constraint artifacts_one_place check ((body is null) = (place is not null)),
    add constraint artifacts_size_not_negative check (size_bytes >= 0);
create index artifacts_by_age on agent.artifacts (created_at);
