-- Events on their way. Sent right after the commit by whoever committed; what is still pending is sent again.

-- name: take
-- Takes pending rows to send: those named, or the ones that are due. A sender that dies leaves them to the next.
update agent.outbox set attempts = attempts + 1, next_attempt_at = clock_timestamp() + make_interval(secs => %(again_s)s)
where id in (
    select id from agent.outbox
    where state = 'pending'
      and (id = any(%(ids)s::uuid[]) or (%(due)s and next_attempt_at <= clock_timestamp() - make_interval(secs => %(age_s)s)))
    order by created_at
    limit %(limit)s
    for update skip locked
)
returning id, organization_id, run_id, name, data

-- name: sent
-- These have arrived.
update agent.outbox set state = 'sent', sent_at = clock_timestamp(), last_error = null where id = any(%(ids)s::uuid[]) and state = 'pending'

-- name: failed
-- These have not; why, for whoever looks.
update agent.outbox set last_error = %(error)s where id = any(%(ids)s::uuid[]) and state = 'pending'
