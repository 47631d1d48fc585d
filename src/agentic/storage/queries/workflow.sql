-- The runs of a caller's own function: a container, and one run a node, which holds the lease, the journal and the questions of its call.

-- name: open_container
-- First part of opening a node: the container of its function run, once, with the contracts and grants of its workflow.
with container as (
    insert into agent.runs (
        id, organization_id, request_key, request_digest, kind, state, user_id, lane, root_run_id, definition_name, definition, tools,
        ceilings, context_trust, deadline_at, started_at
    )
    values (
        %(container_id)s, %(organization_id)s, %(request_key)s, %(container_digest)s, 'workflow', 'running', %(user_id)s, %(lane)s,
        %(container_id)s, %(workflow)s, %(definition)s, %(tools)s, %(ceilings)s, %(trust)s::agent.trust,
        clock_timestamp() + make_interval(secs => %(deadline_s)s), clock_timestamp()
    )
    on conflict do nothing -- by id or by key: both follow from the function run, and either may be met first
    returning organization_id
), contracts as (
    insert into agent.tool_contracts (contract_hash, organization_id, name, version, spec)
    select c.contract_hash, c.organization_id, c.name, c.version, c.spec
    from container cross join jsonb_to_recordset(%(contracts)s::jsonb)
        as c(contract_hash text, organization_id uuid, name text, version int, spec text)
    on conflict (contract_hash) do nothing
)
insert into agent.grants (organization_id, definition, tool, granted_by)
select container.organization_id, %(workflow)s, c.name, %(user_id)s
from container cross join jsonb_to_recordset(%(contracts)s::jsonb) as c(name text)
on conflict (organization_id, definition, tool) do nothing

-- name: open_node
-- Second part: the node's own run, once, while the container is open. It begins with what the container may see and spend.
insert into agent.runs (
    id, organization_id, request_key, request_digest, kind, user_id, lane, root_run_id, parent_run_id, depth, definition_name, definition,
    ceilings, context_trust, deadline_at
)
select %(node_id)s, c.organization_id, %(node_key)s, %(node_digest)s, 'workflow', c.user_id, c.lane, c.id, c.id, 1, c.definition_name,
    jsonb_build_object('node', %(node)s::text), c.ceilings, c.context_trust, c.deadline_at
from agent.runs c
where c.id = %(container_id)s and c.organization_id = %(organization_id)s and c.state in ('queued', 'running', 'parked')
on conflict do nothing -- by id or by key, as above

-- name: take
-- Third part: the node's lease, if the node is due. Its context is the lowest that any node of the workflow has met; the segment of a
-- leader that died is closed as lost.
with led as (
    update agent.runs r set
        context_trust = (select min(x.context_trust) from agent.runs x where x.root_run_id = r.root_run_id),
        -- include: taken
    from agent.runs c
    where r.id = %(node_id)s and r.organization_id = %(organization_id)s and r.kind = 'workflow' and r.request_digest = %(node_digest)s
      and c.id = r.parent_run_id and c.organization_id = r.organization_id and c.state in ('queued', 'running', 'parked')
      and agent.run_is_due(r)
    returning
        r.id, r.organization_id, r.user_id, r.lane, r.root_run_id, r.definition_name, c.tools, r.ceilings,
        r.context_trust::text as context_trust, r.fence, r.wake_seq, r.attempts_without_progress, r.leased_at,
        r.cancel_requested_at is not null or c.cancel_requested_at is not null as cancelled,
        least(r.deadline_at, c.deadline_at) <= clock_timestamp() as overdue
),
-- include: segment
select led.*, m.*,
    (led.ceilings ->> 'max_tool_calls')::int <= (select sum(x.tool_calls) from agent.runs x where x.root_run_id = led.root_run_id) as out_of_calls
from led cross join lateral agent.segment_money(led.root_run_id, led.id, led.organization_id, led.ceilings) m

-- name: look
-- Where a node stands: its answer if it has one, what it waits for, and how its container is.
select c.state as container_state, c.error_code as container_error, c.cancel_requested_at is not null as cancelled,
    c.deadline_at <= clock_timestamp() as overdue, n.state, n.error_code, n.request_digest,
    greatest(n.due_at, n.lease_expires_at, clock_timestamp()) as due_at,
    coalesce(agent.run_is_due(n), false) as due,
    extract(epoch from least(c.deadline_at, (
        select min(a.expires_at) from agent.run_waits w join agent.approvals a on w.kind = 'approval' and a.id = w.ref
        where w.run_id = n.id and a.status = 'pending'
    )) - clock_timestamp())::float8 as within_s,
    (select m.body from agent.run_messages m where m.run_id = n.id and m.message_id = 'result') as result
from agent.runs c
left join agent.runs n on n.id = %(node_id)s and n.organization_id = c.organization_id and n.parent_run_id = c.id
where c.id = %(container_id)s and c.organization_id = %(organization_id)s

-- name: end
-- The container's end, with why; once. What its nodes still ask goes with it. A node under a lease settles its call first: it ends by
-- itself, or the sweep ends it.
with container as (
    update agent.runs c set
        state = %(state)s, finished_at = clock_timestamp(), due_at = null, answer = %(answer)s, partial_reason = %(partial_reason)s,
        error_code = %(error_code)s,
        has_uncertain = exists (select from agent.runs x where x.root_run_id = c.id and x.has_uncertain)
    where c.id = %(container_id)s and c.organization_id = %(organization_id)s and c.kind = 'workflow' and c.parent_run_id is null
      and c.state in ('queued', 'running', 'parked')
    returning c.id
), nodes as (
    update agent.runs n set
        state = 'cancelled', finished_at = clock_timestamp(), lease_expires_at = null, due_at = null, fence = n.fence + 1
    from container
    where n.root_run_id = container.id and n.id <> container.id and n.kind = 'workflow' and n.state in ('queued', 'running', 'parked')
      and (n.lease_expires_at is null or n.lease_expires_at <= clock_timestamp())
    returning n.id
), questions as (
    update agent.approvals a set
        status = case when a.expires_at <= clock_timestamp() then 'expired' else 'cancelled' end, decided_at = clock_timestamp()
    from nodes where a.run_id = nodes.id and a.status = 'pending'
), waits as (
    delete from agent.run_waits w using nodes where w.run_id = nodes.id
)
select count(*) as ended from container

-- name: sweep
-- Ends what outlived its time, its cancellation or its container, once nothing of it is under way, and wakes the functions that wait.
with over as materialized (
    select r.id, c.state in ('succeeded', 'failed', 'cancelled') or c.cancel_requested_at is not null or r.cancel_requested_at is not null
        as cancelled, r.state = 'parked' as waited
    from agent.runs r join agent.runs c on c.id = r.root_run_id and c.kind = 'workflow'
    where r.kind = 'workflow' and r.state in ('queued', 'running', 'parked')
      and (r.lease_expires_at is null or r.lease_expires_at <= clock_timestamp())
      and (c.state in ('succeeded', 'failed', 'cancelled') or c.cancel_requested_at is not null or r.cancel_requested_at is not null
           or c.deadline_at <= clock_timestamp())
      and not (r.id = c.id and exists (
          select from agent.runs x where x.root_run_id = c.id and x.kind = 'workflow' and x.lease_expires_at > clock_timestamp()
      ))
    order by r.deadline_at, r.id
    limit %(limit)s
    for no key update of r skip locked
), ended as (
    update agent.runs r set
        state = case when o.cancelled then 'cancelled' else 'failed' end, finished_at = clock_timestamp(), lease_expires_at = null,
        due_at = null, error_code = case when o.cancelled then r.error_code else 'deadline' end, fence = r.fence + 1,
        has_uncertain = r.has_uncertain or exists (select from agent.runs x where x.root_run_id = r.id and x.has_uncertain)
    from over o where r.id = o.id
    returning r.id, r.organization_id, r.lane, o.waited
), questions as (
    update agent.approvals a set
        status = case when a.expires_at <= clock_timestamp() then 'expired' else 'cancelled' end, decided_at = clock_timestamp()
    from ended where a.run_id = ended.id and a.status = 'pending'
), waits as (
    delete from agent.run_waits w using ended where w.run_id = ended.id
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select gen_random_uuid(), organization_id, id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
    from ended where waited
    returning id
)
select (select count(*) from ended) as ended, coalesce((select array_agg(id) from nudge), '{}') as nudges
