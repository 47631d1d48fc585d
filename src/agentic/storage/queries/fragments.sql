-- Parts that statements of several purposes share, included there by name.

-- name: taken
-- What taking the lease of a run sets: it is led anew. What a dead leader led counts until its lease ran out.
fence = r.fence + 1,
state = 'running',
active_ms = r.active_ms + case
    when r.lease_expires_at is null then 0
    else greatest(0, extract(epoch from least(r.lease_expires_at, clock_timestamp()) - r.leased_at) * 1000)::bigint
end,
lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s),
leased_at = clock_timestamp(),
started_at = coalesce(r.started_at, clock_timestamp()),
due_at = null,
attempts_without_progress = r.attempts_without_progress + 1

-- name: segment
-- What beginning to lead writes besides: the span of the segment; the segment of a leader that died is closed as lost.
segment as (
    insert into agent.spans (id, organization_id, run_id, kind, name, started_at)
    select %(segment_id)s, organization_id, id, 'segment', 'segment ' || fence, leased_at from led
), lost as (
    update agent.spans s set state = 'closed', status = 'lost', ended_at = clock_timestamp()
    from led where s.run_id = led.id and s.kind = 'segment' and s.state = 'open'
)

-- name: parked
-- The run that whoever holds its lease parks: the lease is given back, and the time it was led counts.
parked as (
    update agent.runs r set
        state = 'parked', lease_expires_at = null, due_at = null, attempts_without_progress = 0, provider_failures = 0,
        active_ms = r.active_ms + (extract(epoch from clock_timestamp() - r.leased_at) * 1000)::bigint
    where r.id = %(run_id)s and r.organization_id = %(organization_id)s and r.fence = %(fence)s and r.state = 'running'
      and r.lease_expires_at > clock_timestamp()
    returning r.id, r.organization_id, r.lane, r.wake_seq
),

-- name: approval_status
-- How approval a stands by database time; what a run that is asked to stop has open counts as cancelled, as it will be.
case when a.status <> 'pending' then a.status
     when a.expires_at <= clock_timestamp() then 'expired'
     when exists (select from agent.runs r where r.id = a.run_id and r.cancel_requested_at is not null) then 'cancelled'
     else a.status end

-- name: not_repeatable
-- Whether nobody may make the call of claim k again: its run r is over, or its vendor knows no key, or not for so long.
(r.state in ('succeeded', 'failed', 'cancelled')
 or k.idempotency_class = 'non_idempotent'
 or (k.idempotency_class = 'conditional'
     and k.effect_sent_at + make_interval(secs => coalesce(k.vendor_key_ttl_s, 0)) <= clock_timestamp()))

-- name: settled
-- What settling a call leaves of its run's mark: whether another of its calls is still uncertain.
settled as (
    update agent.runs r set has_uncertain = exists (
        select from agent.idempotency_keys k
        where k.run_id = r.id and k.state = 'uncertain' and not (k.scope = done.scope and k.key = done.key)
    )
    from done where r.id = done.run_id
)
