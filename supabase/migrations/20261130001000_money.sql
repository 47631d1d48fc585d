-- Why: money is bounded before it is spent. A metered call holds its declared upper bound against the run's tree before it starts, the
-- usage line takes its place when the call ends, and the sum of lines and of what is held is what a ceiling compares with.
-- All amounts are US dollars, exact.

-- What one unit of a provider's service costs. Append-only: a new price is a new row, and usage lines name the row they were priced by.
create table agent.prices (
    id uuid not null default gen_random_uuid(),
    -- Null: for every organization of this database. An organization's own row wins.
    organization_id uuid,
    provider text not null,
    -- A tool's platform name or a model's id; '*' is any of the provider, and a row that names it wins.
    item text not null default '*',
    -- What is counted: 'request', 'credit', 'email'; for models 'input_token', 'cached_token', 'output_token'.
    unit text not null,
    unit_price numeric not null,
    valid_from timestamptz not null default clock_timestamp(),
    created_by uuid,
    created_at timestamptz not null default clock_timestamp(),
    constraint prices_pk primary key (id),
    constraint prices_once unique nulls not distinct (organization_id, provider, item, unit, valid_from),
    constraint prices_not_negative check (unit_price >= 0 and unit_price <> 'NaN' and unit_price <> 'Infinity')
);
create trigger prices_append_only before update or delete on agent.prices for each row execute function agent.refuse_change();

-- The rows that count now for an organization and an item, for each provider and unit the latest of each kind, as JSON with exact
-- amounts as text. Which one goes before which is decided where they are used: an own row before everybody's, the exact item before '*'.
create function agent.prices_of(organization uuid, used text) returns jsonb
language sql stable set search_path = '' as $$
    select jsonb_agg(to_jsonb(p) || jsonb_build_object('unit_price', p.unit_price::text))
    from (
        select distinct on (x.organization_id, x.provider, x.item, x.unit)
            x.id, x.organization_id, x.provider, x.item, x.unit, x.unit_price, x.valid_from
        from agent.prices x
        where (x.organization_id is null or x.organization_id = organization)
          and x.item in (used, '*') and x.valid_from <= clock_timestamp()
        order by x.organization_id, x.provider, x.item, x.unit, x.valid_from desc
    ) p
$$;

-- What an organization may spend in one day (UTC); no row means no bound.
create table agent.spending_limits (
    organization_id uuid not null,
    per_day numeric not null,
    changed_by uuid,
    changed_at timestamptz not null default clock_timestamp(),
    constraint spending_limits_pk primary key (organization_id),
    constraint spending_limits_not_negative check (per_day >= 0 and per_day <> 'NaN' and per_day <> 'Infinity')
);

-- Counted at the declared bound, because nobody reported what the call cost.
alter table agent.ai_usage_log add column estimated boolean not null default false;

alter table agent.usage_reservations
    add column tool text,
    add column span_id uuid;
create index usage_reservations_held_by_day on agent.usage_reservations (organization_id) where state = 'held';
create index usage_reservations_expiring on agent.usage_reservations (lease_expires_at) where state = 'held' and owner = 'read';

alter table agent.prices enable row level security;
alter table agent.spending_limits enable row level security;
revoke all on agent.prices, agent.spending_limits from public, anon, authenticated;
grant select, insert, update, delete on agent.prices, agent.spending_limits to service_role;
revoke all on function agent.prices_of(uuid, text) from public, anon, authenticated;
grant execute on function agent.prices_of(uuid, text) to service_role;
