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

-- The five below are called by the statements of a run. They are functions so that a run whose money is not bounded does not even plan
-- what it does not read. Stable: they see what their statement sees.

-- What the tree of a run may cost: the lesser of its root's ceiling and its own; null for no bound.
create function agent.tree_ceiling(of_root uuid, of_run uuid, ceilings jsonb) returns numeric
language plpgsql stable set search_path = '' as $$
begin
    if of_root = of_run then
        return (ceilings ->> 'max_cost')::numeric;
    end if;
    return least(
        (ceilings ->> 'max_cost')::numeric, (select (r.ceilings ->> 'max_cost')::numeric from agent.runs r where r.id = of_root)
    );
end
$$;

-- A model request of a bounded tree that nobody can count; null when there is none, or nothing is bounded.
create function agent.unpriced_model(of_root uuid, of_run uuid, ceilings jsonb) returns jsonb
language plpgsql stable set search_path = '' as $$
begin
    if agent.tree_ceiling(of_root, of_run, ceilings) is null then
        return null;
    end if;
    return (
        select jsonb_build_object('provider', u.provider, 'item', u.item) from agent.ai_usage_log u
        where u.root_run_id = of_root and u.kind = 'model' and u.cost is null
        limit 1
    );
end
$$;

-- What a bounded tree has spent and holds; nulls when nothing bounds it.
create function agent.tree_money(of_root uuid, of_run uuid, ceilings jsonb, out max_cost numeric, out spent numeric, out held numeric)
language plpgsql stable set search_path = '' as $$
begin
    max_cost := agent.tree_ceiling(of_root, of_run, ceilings);
    if max_cost is not null then
        spent := (select coalesce(sum(u.cost), 0) from agent.ai_usage_log u where u.root_run_id = of_root);
        held := (select coalesce(sum(h.amount), 0) from agent.usage_reservations h where h.root_run_id = of_root and h.state = 'held');
    end if;
end
$$;

-- The same before a segment, and the organization's day (UTC) where it has a limit. What the run itself holds is left out.
create function agent.segment_money(
    of_root uuid, of_run uuid, of_organization uuid, ceilings jsonb, out max_cost numeric, out tree_spent numeric, out tree_held numeric,
    out unpriced jsonb, out per_day numeric, out day_spent numeric, out day_held numeric
)
language plpgsql stable set search_path = '' as $$
declare
    midnight constant timestamptz := date_trunc('day', clock_timestamp(), 'UTC');
begin
    max_cost := agent.tree_ceiling(of_root, of_run, ceilings);
    if max_cost is not null then
        tree_spent := (select coalesce(sum(u.cost), 0) from agent.ai_usage_log u where u.root_run_id = of_root);
        tree_held := (
            select coalesce(sum(h.amount), 0) from agent.usage_reservations h
            where h.root_run_id = of_root and h.state = 'held' and h.run_id <> of_run
        );
        unpriced := agent.unpriced_model(of_root, of_run, ceilings);
    end if;
    per_day := (select d.per_day from agent.spending_limits d where d.organization_id = of_organization);
    if per_day is not null then
        day_spent := (
            select coalesce(sum(u.cost), 0) from agent.ai_usage_log u where u.organization_id = of_organization and u.at >= midnight
        );
        day_held := (
            select coalesce(sum(h.amount), 0) from agent.usage_reservations h
            where h.organization_id = of_organization and h.state = 'held' and h.run_id <> of_run
        );
    end if;
end
$$;

-- What a line of usage costs by the prices of now: a model's tokens by kind, the cached ones among its input; anything else its
-- quantity. Nulls when no price covers it, and when it has a cost already. Several rows are named by their ids with commas between.
create function agent.cost_of(of_organization uuid, line jsonb, out cost numeric, out price_row text)
language plpgsql stable set search_path = '' as $$
declare
    model constant boolean := line ->> 'kind' = 'model';
    input constant numeric := coalesce((line ->> 'input_tokens')::numeric, 0);
    output constant numeric := coalesce((line ->> 'output_tokens')::numeric, 0);
    cached constant numeric := least(coalesce((line ->> 'cached_tokens')::numeric, 0), input);
begin
    if line ->> 'cost' is not null then
        return;
    end if;
    if model and not (line ->> 'ok')::boolean and input + output = 0 then
        cost := 0;
        return;
    end if;
    select case
            when not model then (line ->> 'quantity')::numeric * max(x.unit_price)
            when input + output > 0 or max(x.unit_price) = 0 then
                (input - cached) * max(x.unit_price) filter (where x.unit = 'input_token')
                + cached * coalesce(
                    max(x.unit_price) filter (where x.unit = 'cached_token'), max(x.unit_price) filter (where x.unit = 'input_token'))
                + output * max(x.unit_price) filter (where x.unit = 'output_token')
        end,
        string_agg(x.id::text, ',' order by x.unit)
    into cost, price_row
    from (
        select distinct on (c.unit) c.id, c.unit, c.unit_price from agent.prices c
        where (c.organization_id is null or c.organization_id = of_organization)
          and c.provider = line ->> 'provider' and c.item in (line ->> 'item', '*') and c.valid_from <= clock_timestamp()
          and case when model then c.unit in ('input_token', 'cached_token', 'output_token') else c.unit = line ->> 'unit' end
        order by c.unit, c.organization_id is null, c.item = '*', c.valid_from desc, c.id desc
    ) x;
    if cost is null then
        price_row := null;
    end if;
end
$$;

alter table agent.prices enable row level security;
alter table agent.spending_limits enable row level security;
revoke all on agent.prices, agent.spending_limits from public, anon, authenticated;
grant select, insert, update, delete on agent.prices, agent.spending_limits to service_role;
revoke all on function agent.prices_of(uuid, text), agent.tree_ceiling(uuid, uuid, jsonb), agent.unpriced_model(uuid, uuid, jsonb),
    agent.tree_money(uuid, uuid, jsonb), agent.segment_money(uuid, uuid, uuid, jsonb), agent.cost_of(uuid, jsonb) from public, anon, authenticated;
grant execute on function agent.prices_of(uuid, text), agent.tree_ceiling(uuid, uuid, jsonb), agent.unpriced_model(uuid, uuid, jsonb),
    agent.tree_money(uuid, uuid, jsonb), agent.segment_money(uuid, uuid, uuid, jsonb), agent.cost_of(uuid, jsonb) to service_role;
