-- What was used, what it costs, and what may be spent. Figures are sums over the lines, never over a rollup.

-- name: run
-- One run, what its tree may cost, and what it spent and holds.
select r.id, r.root_run_id,
    least((r.ceilings ->> 'max_cost')::numeric, case when r.root_run_id <> r.id then (
        select (x.ceilings ->> 'max_cost')::numeric from agent.runs x where x.id = r.root_run_id
    ) end) as ceiling
from agent.runs r
where r.id = %(run_id)s and r.organization_id = %(organization_id)s

-- name: run_lines
-- The lines of a run and its children, in the order they were written.
select id, at, run_id, span_id, kind, provider, item, quantity, unit, cost, price_row, estimated, input_tokens, output_tokens,
    cached_tokens, reasoning_tokens, ok, error
from agent.ai_usage_log
where organization_id = %(organization_id)s and (root_run_id = %(run_id)s or root_run_id = %(root_run_id)s and run_id = %(run_id)s)
order by at, id
limit %(limit)s

-- name: run_totals
-- The same lines by what was used and unit.
select kind, provider, item, unit, count(*) as lines, sum(quantity) as quantity, coalesce(sum(cost), 0) as cost,
    count(*) filter (where cost is null) as unpriced, count(*) filter (where estimated) as estimated
from agent.ai_usage_log
where organization_id = %(organization_id)s and (root_run_id = %(run_id)s or root_run_id = %(root_run_id)s and run_id = %(run_id)s)
group by kind, provider, item, unit
order by kind, provider, item, unit

-- name: run_held
-- What is held for calls of a run and its children.
select id, run_id, owner, tool, span_id, amount, created_at, lease_expires_at
from agent.usage_reservations
where organization_id = %(organization_id)s and state = 'held'
  and (root_run_id = %(run_id)s or root_run_id = %(root_run_id)s and run_id = %(run_id)s)
order by created_at, id

-- name: day
-- A day (UTC) of an organization: its limit, and what calls that have not ended hold now.
select day, day = today as is_today,
    (select d.per_day from agent.spending_limits d where d.organization_id = %(organization_id)s) as per_day,
    case when day = today then (
        select coalesce(sum(h.amount), 0) from agent.usage_reservations h
        where h.organization_id = %(organization_id)s and h.state = 'held'
    ) else 0 end as held
from (select (clock_timestamp() at time zone 'UTC')::date as today) t
cross join lateral (select coalesce(%(day)s::date, today) as day) d

-- name: day_totals
-- What an organization used in a day (UTC), by what was used and unit.
select kind, provider, item, unit, count(*) as lines, sum(quantity) as quantity, coalesce(sum(cost), 0) as cost,
    count(*) filter (where cost is null) as unpriced, count(*) filter (where estimated) as estimated
from agent.ai_usage_log
where organization_id = %(organization_id)s
  and at >= %(day)s::date::timestamp at time zone 'UTC' and at < (%(day)s::date + 1)::timestamp at time zone 'UTC'
group by kind, provider, item, unit
order by kind, provider, item, unit

-- name: prices
-- The prices that count now: the latest of each organization, provider, item and unit.
select distinct on (provider, item, unit, organization_id) id, organization_id, provider, item, unit, unit_price, valid_from
from agent.prices
where (organization_id is null or organization_id = %(organization_id)s) and valid_from <= clock_timestamp()
order by provider, item, unit, organization_id, valid_from desc, id desc

-- name: set_price
-- Adds a price. No row: the person is no admin of the organization; whoever administers the database is nobody.
insert into agent.prices (organization_id, provider, item, unit, unit_price, created_by)
select %(organization_id)s, %(provider)s, %(item)s, %(unit)s, %(unit_price)s, %(user_id)s
where %(user_id)s::uuid is null or exists (
    select from agent.members m where m.organization_id = %(organization_id)s and m.user_id = %(user_id)s and m.role = 'admin'
)
returning id, organization_id, provider, item, unit, unit_price, valid_from

-- name: set_limit
-- Bounds the day of an organization, or lifts the bound. Says whether the person may.
with may as (
    select %(user_id)s::uuid is null or exists (
        select from agent.members m where m.organization_id = %(organization_id)s and m.user_id = %(user_id)s and m.role = 'admin'
    ) as permitted
), lifted as (
    delete from agent.spending_limits d using may
    where may.permitted and d.organization_id = %(organization_id)s and %(per_day)s::numeric is null
), bounded as (
    insert into agent.spending_limits as d (organization_id, per_day, changed_by)
    select %(organization_id)s, %(per_day)s::numeric, %(user_id)s from may where permitted and %(per_day)s::numeric is not null
    on conflict (organization_id) do update set
        per_day = excluded.per_day, changed_by = excluded.changed_by, changed_at = clock_timestamp()
)
select permitted from may
