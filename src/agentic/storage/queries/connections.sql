-- Accounts and their sealed secrets. The database sees no key; a revoked row has no secret, and stays revoked.

-- name: of_provider
-- What a call may mean by a provider, or the one it names. Those that are not revoked first: a long history hides none of them.
select c.*, extract(epoch from c.renew_at - clock_timestamp())::float as fresh_for_s
from agent.connections c
where c.organization_id = %(organization_id)s and c.provider = %(provider)s
  and (%(id)s::uuid is null or c.id = %(id)s)
order by c.state = 'revoked', c.created_at
limit 100

-- name: read
-- One connection.
select c.*, extract(epoch from c.renew_at - clock_timestamp())::float as fresh_for_s
from agent.connections c
where c.id = %(id)s and c.organization_id = %(organization_id)s

-- name: list
-- Every connection of an organization.
select c.*, extract(epoch from c.renew_at - clock_timestamp())::float as fresh_for_s
from agent.connections c
where c.organization_id = %(organization_id)s
order by c.created_at desc, c.id

-- name: add
-- A new connection. What is obtained with it is due at once.
insert into agent.connections as c (
    id, organization_id, provider, kind, label, account, scopes, header, token_endpoint, client_auth, resource,
    key_id, wrapped_key, sealed, renew_at, created_by
) values (
    %(id)s, %(organization_id)s, %(provider)s, %(kind)s, %(label)s, %(account)s, %(scopes)s, %(header)s, %(token_endpoint)s,
    %(client_auth)s, %(resource)s, %(key_id)s, %(wrapped_key)s, %(sealed)s,
    case when %(kind)s <> 'api_key' then clock_timestamp() end, %(created_by)s
)
returning c.*, extract(epoch from c.renew_at - clock_timestamp())::float as fresh_for_s

-- name: reconnect
-- A new secret for the same account. The fence moves, so that a renewal of the old one stores nothing.
update agent.connections c set
    key_id = %(key_id)s, wrapped_key = %(wrapped_key)s, sealed = %(sealed)s, version = c.version + 1,
    state = 'connected', reauth_reason = null, expires_at = null,
    renew_at = case when c.kind <> 'api_key' then clock_timestamp() end, connected_at = clock_timestamp(),
    refresh_fence = c.refresh_fence + 1, refresh_lease_expires_at = null
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.state <> 'revoked'
returning c.*, extract(epoch from c.renew_at - clock_timestamp())::float as fresh_for_s

-- name: revoke
-- The end of a connection: its secret is forgotten in the same statement.
update agent.connections c set
    state = 'revoked', revoked_at = clock_timestamp(), reauth_reason = null,
    key_id = null, wrapped_key = null, sealed = null, version = c.version + 1, expires_at = null, renew_at = null,
    refresh_fence = c.refresh_fence + 1, refresh_lease_expires_at = null
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.state <> 'revoked'
returning c.*, null::float as fresh_for_s

-- name: take_refresh
-- The lease to renew a token, where that is due and nobody else is at it.
update agent.connections c set
    refresh_fence = c.refresh_fence + 1, refresh_lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.state = 'connected' and c.renew_at <= clock_timestamp()
  and (c.refresh_lease_expires_at is null or c.refresh_lease_expires_at <= clock_timestamp())
returning c.*, extract(epoch from c.renew_at - clock_timestamp())::float as fresh_for_s

-- name: store_tokens
-- The end of a renewal: a minute before the token's end the next one is due, and of a short life after its half.
update agent.connections c set
    key_id = %(key_id)s, wrapped_key = %(wrapped_key)s, sealed = %(sealed)s, version = c.version + 1,
    expires_at = case when %(expires)s then clock_timestamp() + make_interval(secs => %(lifetime_s)s) end,
    renew_at = clock_timestamp() + make_interval(secs => %(lifetime_s)s - least(60, %(lifetime_s)s / 2)),
    refresh_lease_expires_at = null
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.refresh_fence = %(fence)s and c.state = 'connected'
returning c.*, extract(epoch from c.renew_at - clock_timestamp())::float as fresh_for_s

-- name: end_refresh
-- Gives the lease back; whoever is next may try.
update agent.connections c set refresh_lease_expires_at = null
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.refresh_fence = %(fence)s

-- name: refuse_refresh
-- The server refuses what the token is renewed with.
update agent.connections c set state = 'needs_reauth', reauth_reason = %(reason)s, refresh_lease_expires_at = null
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.refresh_fence = %(fence)s and c.state = 'connected'

-- name: reject
-- The vendor rejects the credential, if it is still the one that was sent.
update agent.connections c set state = 'needs_reauth', reauth_reason = %(reason)s
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.version = %(version)s and c.state = 'connected'

-- name: expire
-- The vendor rejects a token, if it is still the one that was sent: the next use renews it.
update agent.connections c set renew_at = clock_timestamp()
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.version = %(version)s and c.state = 'connected'
  and c.renew_at > clock_timestamp()

-- name: sealed_otherwise
-- For a rotation, in every organization: data keys that another master key wraps.
select c.*, null::float as fresh_for_s from agent.connections c
where c.key_id <> %(key_id)s and (%(after)s::uuid is null or c.id > %(after)s)
order by c.id
limit %(limit)s

-- name: rewrap
-- A data key under another master key, if the secret is still the same.
update agent.connections c set key_id = %(key_id)s, wrapped_key = %(wrapped_key)s
where c.id = %(id)s and c.organization_id = %(organization_id)s and c.version = %(version)s and c.state <> 'revoked'
