-- name: read
-- One artifact of an organization, without its bytes.
select id, organization_id, run_id, span_id, media_type, trust::text as trust, sha256, size_bytes, complete, place, created_at
from agent.artifacts
where organization_id = %(organization_id)s and id = %(id)s

-- name: body
-- The bytes of an artifact that stand in its row.
select body from agent.artifacts where organization_id = %(organization_id)s and id = %(id)s and body is not null

-- name: outlived
-- Ended runs whose artifacts are all older than the retention, oldest first.
select r.organization_id, r.id as run_id
from agent.artifacts a
join agent.runs r on r.id = a.run_id
where a.created_at < clock_timestamp() - make_interval(secs => %(older_than_s)s) and r.state in ('succeeded', 'failed', 'cancelled')
  and not exists (
    select from agent.artifacts newer
    where newer.run_id = a.run_id and newer.created_at >= clock_timestamp() - make_interval(secs => %(older_than_s)s)
  )
group by r.organization_id, r.id
order by min(a.created_at)
limit %(limit)s

-- name: forget_run
-- Deletes the artifacts of a run that has ended; one that still runs may be about to name another.
delete from agent.artifacts a using agent.runs r
where r.id = a.run_id and r.organization_id = %(organization_id)s and r.id = %(run_id)s and a.organization_id = r.organization_id
  and r.state in ('succeeded', 'failed', 'cancelled')
