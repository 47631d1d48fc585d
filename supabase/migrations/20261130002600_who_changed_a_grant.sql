-- Why: a grant that is taken back says who did it, and when it was given or taken last, as a switched tool does.

alter table agent.grants
    -- Empty as long as nobody touched it since a run or workflow made it, and where whoever administers the database did.
    add column changed_by uuid,
    add column changed_at timestamptz;
