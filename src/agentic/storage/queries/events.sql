-- What happened to runs, in numbered rows. Triggers write most of them beside the change they tell of (ADR 0031).

-- name: read
-- The events of a run behind one, and where the run stands, as one moment saw both. No row: there is no such run here.
select r.state, e.seq, e.kind, e.at, e.data
from agent.runs r
left join lateral (
    select x.seq, x.kind, x.at, x.data from agent.run_events x
    where x.run_id = r.id and x.organization_id = r.organization_id and x.seq > %(after)s
    order by x.seq
    limit %(limit)s
) e on true
where r.id = %(run_id)s and r.organization_id = %(organization_id)s
order by e.seq

-- name: tell
-- Words of the model while it says them, beside its segment. The head drops those of a segment that leads no more.
insert into agent.run_events (organization_id, run_id, kind, data)
select r.organization_id, r.id, 'text', %(data)s::jsonb from agent.runs r
where r.id = %(run_id)s and r.organization_id = %(organization_id)s and r.fence = %(fence)s and r.state = 'running'
  and r.lease_expires_at > clock_timestamp()
