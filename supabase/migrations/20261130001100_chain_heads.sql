-- Why: a chain alone cannot show that its end was cut off. The head of each chain, its count and last hash, is kept beside it, by the
-- trigger that writes the chain. A line is numbered after the head and not after what is left of the table, so that a line written
-- after a cut does not hide it. And the text that is hashed no longer depends on the session's time zone or on columns added later.

create table agent.chain_heads (
    organization_id uuid not null,
    run_id uuid not null,
    -- The table the chain is in.
    chain text not null,
    seq bigint not null default 0,
    hash text not null default '',
    constraint chain_heads_pk primary key (run_id, chain),
    constraint chain_heads_run foreign key (organization_id, run_id) references agent.runs (organization_id, id) on delete cascade,
    constraint chain_heads_chain_known check (chain in ('policy_decisions', 'effects')),
    constraint chain_heads_begun_has_hash check ((seq = 0) = (hash = ''))
) with (fillfactor = 50); -- every line updates its head in place

-- How the hash of a line was made; see agent.chain_text.
alter table agent.policy_decisions add column hash_version smallint not null default 1;
alter table agent.effects add column hash_version smallint not null default 1;

insert into agent.chain_heads (organization_id, run_id, chain, seq, hash)
select distinct on (run_id) organization_id, run_id, 'policy_decisions', seq, hash from agent.policy_decisions order by run_id, seq desc;
insert into agent.chain_heads (organization_id, run_id, chain, seq, hash)
select distinct on (run_id) organization_id, run_id, 'effects', seq, hash from agent.effects order by run_id, seq desc;

-- Version 2 hashes every column that has a value, so a column that is added later and empty in older lines changes none of their hashes.
-- What this asks of such a column: nullable, without a default, and no json (whose own nulls would be dropped). Anything else takes
-- a new version here and in agent.chain. Version 1 hashed exactly the columns of its day, nulls too, in the zone of the session.
create function agent.chain_text(chain text, line jsonb) returns text
language sql immutable strict set search_path = '' as $$
    select (line ->> 'prev_hash') || case (line ->> 'hash_version')::int
        when 1 then (
            select jsonb_object_agg(c, line -> c) || '{"hash": ""}' from unnest(case chain
                when 'policy_decisions' then array[
                    'id', 'organization_id', 'run_id', 'seq', 'tool', 'contract_hash', 'digest', 'proposal_id', 'approval_id', 'effect',
                    'rule_id', 'rule_version', 'reason', 'context_trust', 'decided_at', 'prev_hash']
                when 'effects' then array[
                    'id', 'organization_id', 'run_id', 'seq', 'kind', 'tool', 'scope', 'key', 'epoch', 'attempt', 'span_id',
                    'outcome_code', 'actor', 'note', 'at', 'prev_hash']
            end) as c
        )::text
        when 2 then jsonb_strip_nulls(line - 'hash')::text
    end
$$;

-- The hash a stored line should have. Null for a version that nobody wrote.
create function agent.chain_hash(line agent.policy_decisions) returns text
language sql stable set search_path = '' set timezone = 'UTC' as $$
    select encode(sha256(convert_to(agent.chain_text('policy_decisions', to_jsonb(line)), 'UTF8')), 'hex')
$$;
create function agent.chain_hash(line agent.effects) returns text
language sql stable set search_path = '' set timezone = 'UTC' as $$
    select encode(sha256(convert_to(agent.chain_text('effects', to_jsonb(line)), 'UTF8')), 'hex')
$$;

-- Links a new line to the head of its chain and moves the head. The lock on the head lets one writer at a time add to a chain; volatile,
-- so that each statement here sees what was committed while it waited. The head moves before the line is stored: an insert that says
-- "on conflict do nothing" would leave it ahead, so none into a chained table may.
create or replace function agent.chain() returns trigger
language plpgsql set search_path = '' set timezone = 'UTC' as $$
declare
    its_chain text := tg_table_name;
    head agent.chain_heads;
begin
    select * into head from agent.chain_heads h where h.run_id = new.run_id and h.chain = its_chain for no key update;
    if not found then
        insert into agent.chain_heads (organization_id, run_id, chain) values (new.organization_id, new.run_id, its_chain)
        on conflict do nothing;
        select * into strict head from agent.chain_heads h where h.run_id = new.run_id and h.chain = its_chain for no key update;
    end if;
    new.seq := head.seq + 1;
    new.prev_hash := head.hash;
    new.hash_version := 2;
    new.hash := encode(sha256(convert_to(new.prev_hash || jsonb_strip_nulls(to_jsonb(new) - 'hash')::text, 'UTF8')), 'hex');
    update agent.chain_heads h set seq = new.seq, hash = new.hash where h.run_id = new.run_id and h.chain = its_chain;
    return new;
end
$$;

-- A head moves with its chain, one line at a time, and nobody else moves it.
create function agent.guard_chain_head() returns trigger
language plpgsql set search_path = '' as $$
begin
    if pg_trigger_depth() > 1 and new.seq = old.seq + 1 and new.run_id = old.run_id and new.chain = old.chain then
        return new;
    end if;
    raise exception 'agent.chain_heads is moved by its chain alone' using errcode = 'restrict_violation';
end
$$;
create trigger chain_heads_guard before update on agent.chain_heads for each row execute function agent.guard_chain_head();
create trigger chain_heads_stay before delete on agent.chain_heads for each row execute function agent.refuse_change();

alter table agent.chain_heads enable row level security;
revoke all on agent.chain_heads from public, anon, authenticated;
grant select, insert, update, delete on agent.chain_heads to service_role;
revoke all on function agent.chain_text(text, jsonb), agent.chain_hash(agent.policy_decisions), agent.chain_hash(agent.effects),
    agent.guard_chain_head() from public, anon, authenticated;
grant execute on function agent.chain_text(text, jsonb), agent.chain_hash(agent.policy_decisions), agent.chain_hash(agent.effects),
    agent.guard_chain_head() to service_role;
