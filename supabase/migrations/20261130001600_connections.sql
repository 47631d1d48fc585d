-- Why: a call acts in somebody's account. What opens that account is kept sealed, under keys that the database never sees, and a row says
-- whether it may still be used.

create table agent.connections (
    id uuid not null,
    organization_id uuid not null,
    -- Provider key, as tools declare it.
    provider text not null,
    -- api_key: one value that is sent as it is. oauth_client: client credentials, which obtain tokens. oauth_refresh: a person's consent.
    kind text not null,
    label text not null,
    -- What anybody of the organization may see of the account, such as its address: names to texts.
    account jsonb not null default '{}',
    state text not null default 'connected',
    scopes text[] not null default '{}',
    -- The header that carries an api_key bare; null for "Authorization: Bearer".
    header text,
    -- Where tokens are obtained, how the client names itself there, and the resource (RFC 8707) they are for.
    token_endpoint text,
    client_auth text,
    resource text,
    -- The secret under a data key, the data key under the master key of this id. What is sealed opens in this row alone.
    key_id text,
    wrapped_key bytea,
    sealed bytea,
    -- Grows whenever the three above change.
    version bigint not null default 1,
    -- Of the token in the secret; null where it is not known or there is none. It is renewed from renew_at on.
    expires_at timestamptz,
    renew_at timestamptz,
    -- Whoever took the lease last renews; the fence is its number.
    refresh_fence bigint not null default 0,
    refresh_lease_expires_at timestamptz,
    -- Why a person must connect it again: a code, never a vendor's words.
    reauth_reason text,
    revoked_at timestamptz,
    created_by uuid,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    constraint connections_pk primary key (id),
    constraint connections_tenant unique (organization_id, id),
    constraint connections_kind_known check (kind in ('api_key', 'oauth_client', 'oauth_refresh')),
    constraint connections_state_known check (state in ('connected', 'needs_reauth', 'revoked')),
    constraint connections_provider_named check (provider ~ '^[a-z][a-z0-9_.-]{0,63}$'),
    constraint connections_label_named check (length(label) between 1 and 200),
    constraint connections_account_is_an_object check (jsonb_typeof(account) = 'object' and octet_length(account::text) <= 8192),
    constraint connections_oauth_has_endpoint check (
        (kind = 'api_key') = (token_endpoint is null) and (kind = 'api_key') = (client_auth is null)
    ),
    constraint connections_client_auth_known check (client_auth in ('basic', 'post')),
    constraint connections_header_of_key check (header is null or kind = 'api_key'),
    constraint connections_revoked_has_time check ((state = 'revoked') = (revoked_at is not null)),
    constraint connections_revoked_is_forgotten check (
        (state = 'revoked') = (sealed is null) and (sealed is null) = (wrapped_key is null) and (sealed is null) = (key_id is null)
    ),
    constraint connections_reauth_has_reason check ((state = 'needs_reauth') = (reauth_reason is not null))
);
create unique index connections_once on agent.connections (organization_id, provider, label) where state <> 'revoked';
create index connections_by_provider on agent.connections (organization_id, provider);
create index connections_by_key on agent.connections (key_id) where key_id is not null;

-- A revoked connection stays revoked, and a connection stays the account it is: what is sealed is bound to it.
create function agent.connection_moves() returns trigger
language plpgsql set search_path = '' as $$
begin
    if (new.id, new.organization_id, new.provider, new.kind, new.created_at)
        is distinct from (old.id, old.organization_id, old.provider, old.kind, old.created_at) then
        raise exception 'a connection stays the account it is' using errcode = 'restrict_violation', constraint = 'connections_identity';
    end if;
    if old.state = 'revoked' and new.state <> 'revoked' then
        raise exception 'a revoked connection stays revoked' using errcode = 'restrict_violation', constraint = 'connections_revoked_stays';
    end if;
    new.updated_at := clock_timestamp();
    return new;
end
$$;
create trigger connections_moves before update on agent.connections for each row execute function agent.connection_moves();

alter table agent.connections enable row level security;
revoke all on agent.connections from public, anon, authenticated;
grant select, insert, update, delete on agent.connections to service_role;
revoke all on function agent.connection_moves() from public, anon, authenticated;
grant execute on function agent.connection_moves() to service_role;
