-- Why: whoever watches a run reads what happened to it from rows, with a place to go on from. Transitions of runs and approvals are told
-- by triggers, so that no statement, of today or of a later release, moves one silently; what only a segment knows comes with its append.
-- And what is kept has an end: retention by age, and sums by day that outlive the lines (ADR 0031).

-- How many events a run has, and which segment may add the model's words.
create table agent.run_event_heads (
    organization_id uuid not null,
    run_id uuid not null,
    seq bigint not null default 0,
    -- The fence of the segment that leads the run; null when nobody does.
    segment bigint,
    -- Words were told of an answer that is not in the log yet.
    open_text boolean not null default false,
    constraint run_event_heads_pk primary key (run_id),
    constraint run_event_heads_tenant unique (organization_id, run_id),
    constraint run_event_heads_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade
) with (fillfactor = 50); -- every event updates its head in place

create table agent.run_events (
    run_id uuid not null,
    seq bigint not null,
    organization_id uuid not null,
    kind text not null,
    -- Who and how, never what was in a call: no arguments, no result, no text from outside. Of the kind 'text': the model's own words.
    data jsonb not null default '{}',
    at timestamptz not null default clock_timestamp(),
    constraint run_events_pk primary key (run_id, seq),
    constraint run_events_head foreign key (organization_id, run_id)
        references agent.run_event_heads (organization_id, run_id) on delete cascade,
    constraint run_events_kind_known check (kind in (
        'run.started', 'segment.started', 'run.parked', 'run.released', 'run.cancel_requested', 'run.succeeded', 'run.failed', 'run.cancelled',
        'run.uncertain', 'approval.requested', 'approval.approved', 'approval.rejected', 'approval.expired', 'approval.cancelled',
        'message.stored', 'text', 'text.reset', 'tool.call.proposed', 'tool.call.authorized', 'tool.call.denied', 'tool.call.started',
        'tool.call.completed', 'tool.call.failed', 'tool.call.uncertain'))
);
create index run_events_by_age on agent.run_events using brin (at);
create trigger run_events_append_only before update or delete on agent.run_events for each row execute function agent.refuse_change();

-- Numbers an event after its run's head. The head's row lock is held to the commit: numbers have no gaps, and whoever sees one has seen
-- all before it. Words of a segment that does not lead the run are dropped. Volatile, so that it sees what was committed while it waited.
create function agent.place_run_event() returns trigger
language plpgsql set search_path = '' as $$
begin
    loop
        update agent.run_event_heads h set
            seq = h.seq + 1,
            segment = case
                when new.kind = 'segment.started' then (new.data ->> 'segment')::bigint
                when new.kind in ('run.parked', 'run.released', 'run.succeeded', 'run.failed', 'run.cancelled') then null
                else h.segment
            end,
            open_text = case new.kind when 'text' then true when 'text.reset' then false when 'message.stored' then false else h.open_text end
        where h.run_id = new.run_id and (new.kind <> 'text' or h.segment = (new.data ->> 'segment')::bigint)
        returning h.seq into new.seq;
        if found then
            return new;
        elsif new.kind = 'text' then
            return null;
        end if;
        insert into agent.run_event_heads (organization_id, run_id) values (new.organization_id, new.run_id) on conflict do nothing;
    end loop;
end
$$;
create trigger run_events_placed before insert on agent.run_events for each row execute function agent.place_run_event();

-- Words of an answer that was given up with its segment are superseded, whichever way the segment ended. The head is locked first: what
-- the segment is telling at this moment is told before, or dropped.
create function agent.reset_run_text(of_organization uuid, of_run uuid) returns void
language plpgsql set search_path = '' as $$
begin
    perform from agent.run_event_heads h where h.run_id = of_run and h.segment is not null for no key update;
    insert into agent.run_events (organization_id, run_id, kind)
    select h.organization_id, h.run_id, 'text.reset' from agent.run_event_heads h
    where h.organization_id = of_organization and h.run_id = of_run and h.open_text;
end
$$;

create function agent.tell_run() returns trigger
language plpgsql set search_path = '' as $$
declare
    told text;
    facts jsonb := '{}';
begin
    if tg_op = 'INSERT' then
        insert into agent.run_events (organization_id, run_id, kind, data)
        values (new.organization_id, new.id, 'run.started', jsonb_build_object(
            'kind', new.kind, 'definition', new.definition_name, 'lane', new.lane, 'root_run_id', new.root_run_id));
        return null;
    end if;
    if new.cancel_requested_at is not null and old.cancel_requested_at is null then
        insert into agent.run_events (organization_id, run_id, kind, data)
        values (new.organization_id, new.id, 'run.cancel_requested', jsonb_build_object('by', new.cancel_requested_by));
    end if;
    if new.has_uncertain <> old.has_uncertain then
        insert into agent.run_events (organization_id, run_id, kind, data)
        values (new.organization_id, new.id, 'run.uncertain', jsonb_build_object('has_uncertain', new.has_uncertain));
    end if;
    if new.fence > old.fence then
        told := 'segment.started';
        facts := jsonb_build_object('segment', new.fence, 'after_lost', old.lease_expires_at is not null);
    elsif new.state <> old.state then
        case new.state
            when 'parked' then
                told := 'run.parked';
                facts := jsonb_build_object('on', (
                    select coalesce(jsonb_agg(distinct w.kind), '[]') from agent.run_waits w where w.run_id = new.id));
            when 'succeeded', 'failed', 'cancelled' then
                told := 'run.' || new.state;
                facts := jsonb_build_object('error_code', new.error_code, 'partial_reason', new.partial_reason);
            else
                null; -- a run is queued when it is started and running when it is led
        end case;
    elsif old.lease_expires_at is not null and new.lease_expires_at is null then
        told := 'run.released';
        facts := jsonb_build_object('due_at', new.due_at);
    end if;
    if told is not null then
        perform agent.reset_run_text(new.organization_id, new.id);
        insert into agent.run_events (organization_id, run_id, kind, data) values (new.organization_id, new.id, told, facts);
    end if;
    return null;
end
$$;
create trigger runs_told_new after insert on agent.runs for each row execute function agent.tell_run();
create trigger runs_told after update on agent.runs for each row
    when (
        new.fence > old.fence or new.state <> old.state or new.has_uncertain <> old.has_uncertain
        or (old.lease_expires_at is not null and new.lease_expires_at is null)
        or (old.cancel_requested_at is null and new.cancel_requested_at is not null)
    )
    execute function agent.tell_run();

create function agent.tell_approval() returns trigger
language plpgsql set search_path = '' as $$
begin
    insert into agent.run_events (organization_id, run_id, kind, data)
    values (
        new.organization_id, new.run_id, 'approval.' || case when tg_op = 'INSERT' then 'requested' else new.status end,
        jsonb_build_object('approval_id', new.id, 'tool', new.tool, 'rule_id', new.rule_id, 'expires_at', new.expires_at)
            || case when tg_op = 'INSERT' then '{}' else jsonb_build_object('by', new.decided_by) end);
    return null;
end
$$;
create trigger approvals_told_new after insert on agent.approvals for each row execute function agent.tell_approval();
create trigger approvals_told after update on agent.approvals for each row when (new.status <> old.status)
    execute function agent.tell_approval();

-- What was used and what it cost by day (UTC), for people and reports. Nothing that holds, spends or bounds money reads it: it is late,
-- and it stays when the lines have gone.
create table agent.ai_usage_daily (
    organization_id uuid not null,
    day date not null,
    kind text not null,
    provider text not null,
    item text not null,
    unit text not null,
    lines bigint not null,
    quantity numeric not null,
    cost numeric not null,
    unpriced bigint not null,
    computed_at timestamptz not null default clock_timestamp(),
    constraint ai_usage_daily_pk primary key (organization_id, day, kind, provider, item, unit),
    constraint ai_usage_daily_not_negative check (lines > 0 and quantity >= 0 and cost >= 0 and unpriced between 0 and lines)
);
create index ai_usage_log_by_age on agent.ai_usage_log using brin (at);

-- The one rule of which trees of runs may go: each of their runs has ended long enough ago, and nothing of them is unknown or held.
create function agent.tree_is_outlived(root uuid, before timestamptz) returns boolean
language sql stable set search_path = '' as $$
    select not exists (
        select from agent.runs r
        where r.root_run_id = root and (r.finished_at is null or r.finished_at >= before or r.has_uncertain)
    ) and not exists (
        select from agent.usage_reservations h where h.root_run_id = root and h.state = 'held'
    )
$$;
create index runs_ended on agent.runs (finished_at) where finished_at is not null;

create index usage_reservations_by_run on agent.usage_reservations (run_id);

-- Partitions of spans of months that ended before this time and that have none of an open run, oldest first.
create function agent.span_partitions_outlived(before timestamptz) returns setof text
language plpgsql stable set search_path = '' as $$
declare
    month record;
    busy boolean;
begin
    for month in
        select c.relname as name,
            (to_date(right(c.relname, 6), 'YYYYMM') + interval '1 month') at time zone 'UTC' as ends
        from pg_catalog.pg_inherits i
        join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'agent.spans'::regclass and c.relname ~ '^spans_[0-9]{6}$'
        order by c.relname
    loop
        exit when month.ends > before;
        execute format('select exists (select from agent.%I s join agent.runs r on r.id = s.run_id where r.finished_at is null)', month.name)
            into busy;
        if not busy then
            return next month.name;
        end if;
    end loop;
end
$$;

-- Drops the first of them; its name, or null. With its owner's right to drop tables. The drop waits a moment for the statements under
-- way and gives up after that: the next sweep tries again.
create function agent.drop_span_partition(before timestamptz) returns text
language plpgsql security definer set search_path = '' set lock_timeout = '2s' as $$
declare
    oldest text;
begin
    select p into oldest from agent.span_partitions_outlived(before) p limit 1;
    if oldest is not null then
        execute format('drop table agent.%I', oldest);
    end if;
    return oldest;
end
$$;

alter table agent.run_event_heads enable row level security;
alter table agent.run_events enable row level security;
alter table agent.ai_usage_daily enable row level security;
revoke all on agent.run_event_heads, agent.run_events, agent.ai_usage_daily from public, anon, authenticated;
grant select, insert, update, delete on agent.run_event_heads, agent.run_events, agent.ai_usage_daily to service_role;
revoke all on function agent.place_run_event(), agent.reset_run_text(uuid, uuid), agent.tell_run(), agent.tell_approval(),
    agent.tree_is_outlived(uuid, timestamptz), agent.span_partitions_outlived(timestamptz),
    agent.drop_span_partition(timestamptz) from public, anon, authenticated;
grant execute on function agent.place_run_event(), agent.reset_run_text(uuid, uuid), agent.tell_run(), agent.tell_approval(),
    agent.tree_is_outlived(uuid, timestamptz), agent.span_partitions_outlived(timestamptz),
    agent.drop_span_partition(timestamptz) to service_role;
