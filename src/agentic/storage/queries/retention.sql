-- Removal of what has been kept long enough, and sums by day that stay. Ages count by the database's clock.

-- name: allow
-- First part of removing append-only rows: says for this transaction that retention does it.
select set_config('agent.retention', 'on', true)

-- name: outlived_trees
-- Trees of runs whose time is over, oldest first.
select r.organization_id, r.id as root_run_id, array(select m.id from agent.runs m where m.root_run_id = r.id) as run_ids
from agent.runs r
where r.id = r.root_run_id and r.finished_at < clock_timestamp() - make_interval(days => %(days)s)
  and agent.tree_is_outlived(r.id, clock_timestamp() - make_interval(days => %(days)s))
  and (%(elsewhere)s or not exists (
      select from agent.runs m join agent.artifacts a on a.run_id = m.id where m.root_run_id = r.id and a.place is not null
  ))
order by r.finished_at
limit %(limit)s

-- name: forget_lines
-- Second part of removing a tree: what it used. The sums by day stay.
delete from agent.ai_usage_log u
where u.root_run_id = %(root_run_id)s and u.organization_id = %(organization_id)s
  and agent.tree_is_outlived(u.root_run_id, clock_timestamp() - make_interval(days => %(days)s))

-- name: forget_tree_spans
-- Third part: spans, which no foreign key ties to their run.
delete from agent.spans s
where s.run_id = any(%(run_ids)s::uuid[]) and s.organization_id = %(organization_id)s
  and agent.tree_is_outlived(%(root_run_id)s, clock_timestamp() - make_interval(days => %(days)s))

-- name: forget_runs
-- Last part: the runs, with everything that hangs on them.
with gone as (
    delete from agent.runs r
    where r.root_run_id = %(root_run_id)s and r.organization_id = %(organization_id)s
      and agent.tree_is_outlived(r.root_run_id, clock_timestamp() - make_interval(days => %(days)s))
    returning r.id
)
select count(*) as runs from gone

-- name: drop_span_partition
-- Drops one partition of spans.
select agent.drop_span_partition(clock_timestamp() - make_interval(days => %(days)s)) as name

-- name: forget_spans
-- Spans that stand in no partition of a month: the upkeep was away when they were written.
with gone as (
    delete from agent.spans_default s where s.ctid = any(array(
        select x.ctid from agent.spans_default x left join agent.runs r on r.id = x.run_id
        where x.started_at < clock_timestamp() - make_interval(days => %(days)s) and (r.id is null or r.finished_at is not null)
        limit %(limit)s
    ))
    returning s.id
)
select count(*) as spans from gone

-- name: forget_events
-- Events of runs that have ended.
with gone as (
    delete from agent.run_events e where e.ctid = any(array(
        select x.ctid from agent.run_events x join agent.runs r on r.id = x.run_id
        where x.at < clock_timestamp() - make_interval(days => %(days)s) and r.finished_at is not null
        limit %(limit)s
    ))
    returning e.seq
)
select count(*) as events from gone

-- name: forget_outbox
-- Events that were sent.
with gone as (
    delete from agent.outbox o where o.ctid = any(array(
        select x.ctid from agent.outbox x
        where x.state = 'sent' and x.sent_at < clock_timestamp() - make_interval(days => %(days)s)
        limit %(limit)s
    ))
    returning o.id
)
select count(*) as outbox from gone

-- name: forget_deliveries
-- Claims on deliveries that are about no run, and counts of those that changed nothing. Each part is as large as the batch at most.
with claims as (
    delete from agent.idempotency_keys k where k.ctid = any(array(
        select x.ctid from agent.idempotency_keys x
        where x.run_id is null and x.scope like 'webhook.%%' and x.created_at < clock_timestamp() - make_interval(days => %(days)s)
        limit %(limit)s
    ))
    returning k.key
), drops as (
    delete from agent.webhook_drops d where d.ctid = any(array(
        select x.ctid from agent.webhook_drops x
        where x.day < (clock_timestamp() at time zone 'UTC')::date - %(days)s::int
        limit %(limit)s
    ))
    returning d.day
)
select (select count(*) from claims) + (select count(*) from drops) as deliveries

-- name: count
-- What a sweep would remove.
select
    (
        select count(*) from agent.runs m join agent.runs r on r.id = m.root_run_id
        where r.finished_at < clock_timestamp() - make_interval(days => %(runs_days)s)
          and agent.tree_is_outlived(r.id, clock_timestamp() - make_interval(days => %(runs_days)s))
          and (%(elsewhere)s or not exists (
              select from agent.runs x join agent.artifacts a on a.run_id = x.id where x.root_run_id = r.id and a.place is not null
          ))
    ) as runs,
    (
        select count(*) from agent.span_partitions_outlived(clock_timestamp() - make_interval(days => %(spans_days)s))
    ) as span_partitions,
    (
        select count(*) from agent.spans_default s left join agent.runs r on r.id = s.run_id
        where s.started_at < clock_timestamp() - make_interval(days => %(spans_days)s) and (r.id is null or r.finished_at is not null)
    ) as spans,
    (
        select count(*) from agent.run_events e join agent.runs r on r.id = e.run_id
        where e.at < clock_timestamp() - make_interval(days => %(events_days)s) and r.finished_at is not null
    ) as events,
    (
        select count(*) from agent.outbox o
        where o.state = 'sent' and o.sent_at < clock_timestamp() - make_interval(days => %(outbox_days)s)
    ) as outbox,
    (
        select count(*) from agent.idempotency_keys k
        where k.run_id is null and k.scope like 'webhook.%%'
          and k.created_at < clock_timestamp() - make_interval(days => %(deliveries_days)s)
    ) + (
        select count(*) from agent.webhook_drops d where d.day < (clock_timestamp() at time zone 'UTC')::date - %(deliveries_days)s::int
    ) as deliveries

-- name: roll_up
-- Sums of the last days (UTC), today among them, computed anew: a line that was committed late is in them the next time. Lines only
-- become more, unless their runs went; sums of such a day stay as they were.
with summed as (
    insert into agent.ai_usage_daily (organization_id, day, kind, provider, item, unit, lines, quantity, cost, unpriced)
    select u.organization_id, (u.at at time zone 'UTC')::date, u.kind, u.provider, u.item, u.unit, count(*), sum(u.quantity),
        coalesce(sum(u.cost), 0), count(*) filter (where u.cost is null)
    from agent.ai_usage_log u
    where u.at >= date_trunc('day', clock_timestamp(), 'UTC') - make_interval(days => %(days)s)
    group by 1, 2, 3, 4, 5, 6
    on conflict (organization_id, day, kind, provider, item, unit) do update set
        lines = excluded.lines, quantity = excluded.quantity, cost = excluded.cost, unpriced = excluded.unpriced,
        computed_at = clock_timestamp()
    where excluded.lines > ai_usage_daily.lines
    returning day
)
select count(*) as sums from summed

-- name: daily
-- The sums of some days of an organization.
select u.day, u.kind, u.provider, u.item, u.unit, u.lines, u.quantity, u.cost, u.unpriced, u.computed_at
from agent.ai_usage_daily u
cross join (select coalesce(%(last)s::date, (clock_timestamp() at time zone 'UTC')::date) as day) last
where u.organization_id = %(organization_id)s and u.day > last.day - %(days)s::int and u.day <= last.day
order by day, kind, provider, item, unit
