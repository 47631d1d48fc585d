-- Signed deliveries: what a provider tells of accounts, and counts of those that changed nothing, whatever they were about.

-- name: tell
-- All that one event does to each connection of its account: the claim on the delivery, the state, the event that tells of it. A
-- connection that was connected again since then stays connected, and is told of nothing.
with account as materialized (
    select c.id, c.organization_id, c.provider,
        %(ends_consent)s and coalesce(to_timestamp(%(at)s::float + 1) <= c.connected_at, false) as late
    from agent.connections c
    where c.provider = %(provider)s and c.account @> %(account)s::jsonb and %(account)s::jsonb <> '{}' and c.state <> 'revoked'
), claimed as (
    insert into agent.idempotency_keys (
        organization_id, scope, key, state, request_hash, connection_id, idempotency_class, completed_at, output, outcome_status
    )
    select organization_id, 'webhook.' || provider, %(delivery_id)s || ':' || id, 'completed', %(body_hash)s, id, 'idempotent',
        clock_timestamp(), ''::bytea, 'ok'
    from account
    on conflict (organization_id, scope, key) do nothing
    returning organization_id, connection_id
), fresh as (
    select account.* from account join claimed on claimed.organization_id = account.organization_id and claimed.connection_id = account.id
), ended as (
    update agent.connections c set state = 'needs_reauth', reauth_reason = 'consent_ended'
    from fresh
    where c.id = fresh.id and c.organization_id = fresh.organization_id and %(ends_consent)s and c.state = 'connected'
      and not coalesce(to_timestamp(%(at)s::float + 1) <= c.connected_at, false)
), nudge as (
    insert into agent.outbox (id, organization_id, name, data)
    select gen_random_uuid(), organization_id, %(event_name)s, jsonb_strip_nulls(jsonb_build_object(
        'organization_id', organization_id, 'connection_id', id, 'provider', provider, 'type', %(type)s::text,
        'delivery_id', %(delivery_id)s::text, 'object_id', %(object_id)s::text, 'truncated', case when %(truncated)s then 'true' end))
    from fresh where not late
    returning id, organization_id, run_id, name, data
)
select (select count(*) from account) as known, (select count(*) from fresh) as fresh,
    (select coalesce(jsonb_agg(to_jsonb(nudge)), '[]') from nudge) as events

-- name: drop
-- More deliveries that changed nothing, of today (UTC). In one order, so that two who count the same do not wait for each other.
insert into agent.webhook_drops as d (provider, reason, day, drops)
select c.provider, c.reason, (clock_timestamp() at time zone 'UTC')::date, c.drops
from unnest(%(providers)s::text[], %(reasons)s::text[], %(counts)s::bigint[]) as c (provider, reason, drops)
order by c.provider, c.reason
on conflict (provider, reason, day) do update set drops = d.drops + excluded.drops, last_at = clock_timestamp()

-- name: drops
-- Deliveries that changed nothing, the latest days first.
select provider, reason, day, drops, last_at from agent.webhook_drops order by day desc, provider, reason limit %(limit)s
