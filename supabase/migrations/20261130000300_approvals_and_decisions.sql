-- Why: an approval covers exactly one call (run, tool, contract, digest) and is decided once, on database time. Decisions are
-- append-only and chained per run, so that a missing or altered line shows.

create table agent.approvals (
    id uuid not null default gen_random_uuid(),
    organization_id uuid not null,
    run_id uuid not null,
    tool text not null,
    contract_hash text not null,
    digest text not null,
    arguments_text text not null,
    shown text,
    rule_id text not null,
    rule_version int not null,
    reason text not null,
    requested_by uuid,
    -- Whoever the run acts for may not be the one who decides.
    four_eyes boolean not null default false,
    status text not null default 'pending',
    expires_at timestamptz not null,
    decided_at timestamptz,
    decided_by uuid,
    comment text,
    -- Set when an operator found that the approved effect did not happen: a second execution needs a second approval.
    spent_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    constraint approvals_pk primary key (id),
    constraint approvals_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint approvals_status_known check (status in ('pending', 'approved', 'rejected', 'expired', 'cancelled')),
    constraint approvals_decided_has_time check ((status = 'pending') = (decided_at is null)),
    constraint approvals_person_decides check (status not in ('approved', 'rejected') or decided_by is not null),
    constraint approvals_four_eyes check (
        not four_eyes or status not in ('approved', 'rejected') or requested_by is null or decided_by is distinct from requested_by
    )
);
create unique index approvals_open_once on agent.approvals (run_id, tool, contract_hash, digest) where status = 'pending';
create index approvals_cover on agent.approvals (run_id, tool, contract_hash, digest, created_at desc);
create index approvals_inbox on agent.approvals (organization_id, created_at desc) where status = 'pending';

-- Two people may see a due run differently only through this function: the run is open, nobody leases it, and it waits for
-- nothing that has not happened yet. A parked run of which no wait can be found waits for nothing.
create function agent.approval_is_settled(a agent.approvals) returns boolean
language sql stable set search_path = '' as $$
    select (a).status <> 'pending' or (a).expires_at <= clock_timestamp()
$$;

create function agent.run_is_due(r agent.runs) returns boolean
language sql stable set search_path = '' as $$
    select (r).state in ('queued', 'running', 'parked')
       and ((r).lease_expires_at is null or (r).lease_expires_at <= clock_timestamp())
       and (
            (r).cancel_requested_at is not null
         or (r).deadline_at <= clock_timestamp()
         or case (r).state
                when 'parked' then coalesce((
                    select agent.approval_is_settled(a)
                    from agent.run_waits w
                    join agent.approvals a on w.kind = 'approval' and a.id = w.ref
                    where w.run_id = (r).id
                    order by w.ordinal
                    limit 1
                ), not exists (select from agent.run_waits w where w.run_id = (r).id))
                else (r).due_at is null or (r).due_at <= clock_timestamp()
            end
       )
$$;

create table agent.policy_decisions (
    id uuid not null default gen_random_uuid(),
    organization_id uuid not null,
    run_id uuid not null,
    seq bigint not null,
    tool text not null,
    contract_hash text,
    digest text,
    proposal_id uuid,
    approval_id uuid,
    effect text not null,
    rule_id text not null,
    rule_version int not null,
    reason text not null,
    context_trust agent.trust not null,
    decided_at timestamptz not null default clock_timestamp(),
    prev_hash text not null,
    hash text not null,
    constraint policy_decisions_pk primary key (id),
    constraint policy_decisions_chain unique (run_id, seq),
    constraint policy_decisions_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint policy_decisions_effect_known check (effect in ('allow', 'deny', 'require_approval'))
);

-- Links a new row to the last one of its run. One writer of a chain at a time: reads of a turn are refused side by side, and a sweep may
-- write beside the run's leader. Volatile and plpgsql, so that it sees the rows committed while it waited for the lock.
create function agent.chain() returns trigger
language plpgsql set search_path = '' as $$
declare
    last_seq bigint;
    last_hash text;
begin
    perform pg_advisory_xact_lock(tg_relid::int, hashtext(new.run_id::text));
    execute format('select seq, hash from %I.%I where run_id = $1 order by seq desc limit 1', tg_table_schema, tg_table_name)
        into last_seq, last_hash using new.run_id;
    new.seq := coalesce(last_seq, 0) + 1;
    new.prev_hash := coalesce(last_hash, '');
    new.hash := '';
    new.hash := encode(sha256(convert_to(new.prev_hash || to_jsonb(new)::text, 'UTF8')), 'hex');
    return new;
end
$$;

create function agent.refuse_change() returns trigger
language plpgsql set search_path = '' as $$
begin
    if coalesce(current_setting('agent.retention', true), '') = 'on' then
        return case tg_op when 'DELETE' then old else new end;
    end if;
    raise exception '%.% is append-only', tg_table_schema, tg_table_name using errcode = 'restrict_violation';
end
$$;

create trigger policy_decisions_chain before insert on agent.policy_decisions for each row execute function agent.chain();
create trigger policy_decisions_append_only before update or delete on agent.policy_decisions for each row execute function agent.refuse_change();
