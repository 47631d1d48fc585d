-- Decisions of people. Each is one compare-and-set on database time, with the decider's authority checked in the same statement.

-- name: decide
-- Decides a pending, unexpired approval of a run that nobody asked to stop; wakes the run. No row: see read.
-- The run is locked first, as whoever parks or ends it does: two that lock both in another order would wait for each other.
with run as materialized (
    select r.id from agent.runs r join agent.approvals a on a.run_id = r.id
    where a.id = %(approval_id)s and a.organization_id = %(organization_id)s and r.cancel_requested_at is null
    for no key update of r
), decided as (
    update agent.approvals a set
        status = %(status)s, decided_at = clock_timestamp(), decided_by = %(user_id)s, comment = %(comment)s
    from run
    where a.run_id = run.id and a.id = %(approval_id)s and a.organization_id = %(organization_id)s and a.status = 'pending' and a.expires_at > clock_timestamp()
      and not (a.four_eyes and a.requested_by is not distinct from %(user_id)s)
      and exists (
          select from agent.members m
          where m.organization_id = a.organization_id and m.user_id = %(user_id)s and m.role in ('approver', 'operator', 'admin')
      )
    returning a.run_id
), woken as (
    update agent.runs r set wake_seq = r.wake_seq + 1 from decided d where r.id = d.run_id
    returning r.id, r.organization_id, r.lane
), nudge as (
    insert into agent.outbox (id, organization_id, run_id, name, data)
    select %(event_id)s, organization_id, id, %(event_name)s,
        jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
    from woken
)
select run_id from decided

-- name: read
-- One approval, its status by database time; what a run that is asked to stop has open reads as cancelled, as it will be.
select a.id, a.run_id, a.tool, a.contract_hash, a.digest, a.arguments_text, a.shown, a.rule_id, a.rule_version, a.reason, a.requested_by, a.four_eyes,
    a.connection_id, a.account,
    -- include: approval_status
    as status,
    a.expires_at, a.decided_at, a.decided_by, a.comment, a.created_at
from agent.approvals a
where a.id = %(approval_id)s and a.organization_id = %(organization_id)s

-- name: list
-- Approvals of an organization, newest first; of one status or run when asked.
select a.id, a.run_id, a.tool, a.contract_hash, a.digest, a.arguments_text, a.shown, a.rule_id, a.rule_version, a.reason, a.requested_by, a.four_eyes,
    a.connection_id, a.account,
    -- include: approval_status
    as status,
    a.expires_at, a.decided_at, a.decided_by, a.comment, a.created_at
from agent.approvals a
where a.organization_id = %(organization_id)s
  and (%(run_id)s::uuid is null or a.run_id = %(run_id)s)
  and (%(status)s::text is null
       or %(status)s =
           -- include: approval_status
       )
order by a.created_at desc, a.id
limit %(limit)s

-- name: expire
-- Marks what database time has already decided, and wakes the runs that waited.
with due as materialized (
    select a.id from agent.approvals a join agent.runs r on r.id = a.run_id
    where a.status = 'pending' and a.expires_at <= clock_timestamp()
    order by a.expires_at limit %(limit)s
    for no key update of a, r skip locked
), expired as (
    update agent.approvals a set status = 'expired', decided_at = clock_timestamp() from due where a.id = due.id
    returning a.run_id
), woken as (
    update agent.runs r set wake_seq = r.wake_seq + 1
    from (select distinct run_id from expired) e where r.id = e.run_id and r.state = 'parked'
    returning r.id, r.organization_id, r.lane
)
insert into agent.outbox (id, organization_id, run_id, name, data)
select gen_random_uuid(), organization_id, id, %(event_name)s,
    jsonb_build_object('organization_id', organization_id, 'run_id', id, 'lane', lane)
from woken
returning id
