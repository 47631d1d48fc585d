-- Checks of the record: chains against their heads, and against the journal. Each statement is one snapshot, so a run under way is
-- checked as well as one that is over.

-- name: known
-- Whether an organization has a run.
select id from agent.runs where id = %(run_id)s and organization_id = %(organization_id)s

-- name: page
-- Runs in the order of their ids.
select id from agent.runs
where organization_id = %(organization_id)s
  and (%(since)s::timestamptz is null or created_at >= %(since)s)
  and (%(after)s::uuid is null or id > %(after)s)
order by id
limit %(limit)s

-- name: decisions_lines
-- Head of a chain's check: the lines of decisions of each run, each beside the one before it.
with line as (
    select d.run_id, d.seq, d.tool, d.prev_hash, d.hash, d.hash is not distinct from agent.chain_hash(d) as sound,
        coalesce(lag(d.seq) over w, 0) as previous, coalesce(lag(d.hash) over w, '') as previous_hash
    from agent.policy_decisions d
    where d.run_id = any(%(runs)s::uuid[])
    window w as (partition by d.run_id order by d.seq)
)

-- name: effects_lines
-- Head of a chain's check: the lines of effects of each run, in the same way.
with line as (
    select e.run_id, e.seq, e.tool, e.prev_hash, e.hash, e.hash is not distinct from agent.chain_hash(e) as sound,
        coalesce(lag(e.seq) over w, 0) as previous, coalesce(lag(e.hash) over w, '') as previous_hash
    from agent.effects e
    where e.run_id = any(%(runs)s::uuid[])
    window w as (partition by e.run_id order by e.seq)
)

-- name: chain
-- Tail of a chain's check, after its lines: the last line of each run, its head, and the lines that do not stand as they were written.
, suspect as (
    select l.run_id, jsonb_agg(jsonb_build_object(
        'seq', l.seq, 'tool', l.tool, 'previous', l.previous, 'sound', l.sound, 'linked', l.prev_hash = l.previous_hash,
        'follows', (select min(f.seq) from line f where f.run_id = l.run_id and f.hash = l.prev_hash and f.seq <> l.seq)
    ) order by l.seq) as lines
    from line l
    where not l.sound or l.prev_hash <> l.previous_hash or l.seq <> l.previous + 1
    group by l.run_id
), last as (
    select distinct on (run_id) run_id, seq, hash, count(*) over (partition by run_id) as lines from line order by run_id, seq desc
)
select r.id as run_id, coalesce(last.lines, 0) as lines, coalesce(last.seq, 0) as seq, coalesce(last.hash, '') as hash,
    h.seq as head_seq, h.hash as head_hash, coalesce(suspect.lines, '[]') as suspects
from agent.runs r
left join last on last.run_id = r.id
left join suspect on suspect.run_id = r.id
left join agent.chain_heads h on h.run_id = r.id and h.chain = %(chain)s
where r.id = any(%(runs)s::uuid[]) and r.organization_id = %(organization_id)s

-- name: disagreements
-- What journal, effects and decisions of each run do not agree on. All three are written in the commit of the change they tell of.
with run as materialized (
    select id from agent.runs where id = any(%(runs)s::uuid[]) and organization_id = %(organization_id)s
), unrecorded as (
    select k.run_id, 'no_effect' as kind, k.tool, k.scope, k.key, null::bigint as seq, k.state as word, 0::bigint as found, 0::bigint as allowed
    from agent.idempotency_keys k join run on run.id = k.run_id
    where k.tool is not null and k.state in ('completed', 'uncertain')
      and not exists (
          select from agent.effects e
          where e.run_id = k.run_id and e.scope = k.scope and e.key = k.key and e.epoch = k.epoch
            and (e.kind = k.state or e.kind = 'confirmed' and k.state = 'completed')
      )
), latest as (
    select distinct on (e.run_id, e.scope, e.key) e.run_id, e.organization_id, e.tool, e.scope, e.key, e.epoch, e.seq, e.kind
    from agent.effects e join run on run.id = e.run_id
    order by e.run_id, e.scope, e.key, e.seq desc
), unjournaled as (
    select l.run_id, 'no_journal' as kind, l.tool, l.scope, l.key, l.seq, l.kind as word, 0::bigint as found, 0::bigint as allowed
    from latest l
    left join agent.idempotency_keys k
        on k.organization_id = l.organization_id and k.scope = l.scope and k.key = l.key and k.epoch = l.epoch
    where case l.kind
        when 'completed' then k.state is distinct from 'completed'
        when 'confirmed' then k.state is distinct from 'completed'
        when 'uncertain' then k.state is distinct from 'uncertain'
        when 'held' then false
        else k.state is not null
    end
), attempts as (
    select e.run_id, e.tool, count(distinct (e.scope, e.key, e.epoch, e.attempt)) as found
    from agent.effects e join run on run.id = e.run_id
    group by e.run_id, e.tool
), undecided as (
    select a.run_id, 'no_decision' as kind, a.tool, null::text as scope, null::text as key, null::bigint as seq, null::text as word,
        a.found, d.allowed
    from attempts a
    cross join lateral (
        select count(*) as allowed from agent.policy_decisions p
        where p.run_id = a.run_id and p.tool = a.tool and p.effect = 'allow'
    ) d
    where a.found > d.allowed
)
select run_id, kind, tool, seq, word, found, allowed,
    left(encode(sha256(convert_to(scope, 'UTF8') || '\x00'::bytea || convert_to(key, 'UTF8')), 'hex'), 16) as ref
from (select * from unrecorded union all select * from unjournaled union all select * from undecided) x
order by run_id, kind, seq, tool

-- name: waits
-- What a run waits for now, in the order of its calls.
select kind, ref, ordinal, created_at from agent.run_waits
where run_id = %(run_id)s and organization_id = %(organization_id)s
order by ordinal

-- name: artifacts
-- What of a run's results was too large to show, without its bytes.
select id, span_id, media_type, trust::text as trust, sha256, size_bytes, complete, created_at from agent.artifacts
where run_id = %(run_id)s and organization_id = %(organization_id)s
order by created_at, id
