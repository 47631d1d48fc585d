-- Why: the provider of a connected account tells of the account itself: that its consent has ended, that a message came. Such a delivery
-- is about a connection and about no run. And rules, and a person who approves, want to know whether an email goes to somebody new.

-- Connected last, by hand: what a provider says of a time before that is over.
alter table agent.connections add column connected_at timestamptz not null default clock_timestamp();
-- The connections that stand for an account at a provider, by what the provider calls it.
create index connections_by_account on agent.connections using gin (account jsonb_path_ops) where state <> 'revoked';

-- An event of an account has no run.
alter table agent.outbox alter column run_id drop not null;

-- Deliveries that are claimed for no run go by their age, those of jobs with their run.
create index idempotency_keys_of_no_run on agent.idempotency_keys (created_at) where run_id is null;

alter table agent.webhook_drops
    drop constraint webhook_drops_reason_known,
    add constraint webhook_drops_reason_known check (reason in (
        'bad_signature', 'unreadable', 'unknown_job', 'job_mismatch', 'not_terminal', 'unknown_account', 'not_used', 'duplicate', 'late'));

-- An address of an organization as the index below knows it: always of one size, and no address in itself.
create function agent.recipient_mark(organization_id uuid, address text) returns bytea
language sql immutable parallel safe set search_path = '' as $$
    select sha256(convert_to(organization_id::text || ' ' || lower(address), 'UTF8'))
$$;

-- Everybody an email of these arguments goes to. Never raises: it runs inside the commit that says that the email left.
create function agent.recipients_of(organization_id uuid, arguments text) returns bytea[]
language plpgsql immutable set search_path = '' as $$
begin
    return (
        select coalesce(array_agg(distinct agent.recipient_mark(organization_id, btrim(address::text, '"'))), '{}')
        from (values ('to'), ('cc'), ('bcc')) listed (name)
        cross join lateral json_array_elements(
            case when json_typeof(arguments::json -> listed.name) = 'array' then arguments::json -> listed.name else '[]'::json end
        ) address
    );
exception when data_exception then  -- no JSON, or none that can be text
    return '{}';
end
$$;

-- Without a list of its own of what is pending, so that no send pays for others.
create index idempotency_keys_recipients on agent.idempotency_keys using gin (agent.recipients_of(organization_id, arguments_text))
    with (fastupdate = off)
    where tool = 'email.send' and state = 'completed' and outcome_status = 'ok';

revoke all on function agent.recipient_mark(uuid, text), agent.recipients_of(uuid, text) from public, anon, authenticated;
grant execute on function agent.recipient_mark(uuid, text), agent.recipients_of(uuid, text) to service_role;
