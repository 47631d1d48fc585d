-- The engine's statements. Each is named, says what it is for, and is only ever run under the engine's lock.

-- name: upsert_app
-- Where the app is called from now on.
insert into agentic_engine.apps (name, url, checksum, synced_at)
values (%(name)s, %(url)s, %(checksum)s, %(now)s)
on conflict (name) do update set url = excluded.url, checksum = excluded.checksum, synced_at = excluded.synced_at;

-- name: app_checksum
-- What the app registered last, to tell it whether anything changed.
select checksum from agentic_engine.apps where name = %(name)s;

-- name: upsert_function
-- A declared function. One that another app declared before moves to the app that declares it now.
insert into agentic_engine.functions (id, app, config, active)
values (%(id)s, %(app)s, %(config)s, true)
on conflict (id) do update set app = excluded.app, config = excluded.config, active = true;

-- name: retire_functions
-- Functions that the app no longer lists start no more runs.
update agentic_engine.functions set active = false where app = %(app)s and not (id = any(%(kept)s::text[]));

-- name: drop_crons
-- Cron triggers that no active function of the app declares any more.
delete from agentic_engine.crons c using agentic_engine.functions f
where f.id = c.function_id and f.app = %(app)s
  and not (c.function_id || ' ' || c.expression = any(%(kept)s::text[]));

-- name: plan_cron
-- A cron trigger; one that stands already keeps its next time, so that a new registration skips no firing.
insert into agentic_engine.crons (function_id, expression, next_at)
values (%(function_id)s, %(expression)s, %(next_at)s)
on conflict (function_id, expression) do nothing;

-- name: retry_app_now
-- The app has a new address: calls that could not reach the old one are due at once.
update agentic_engine.jobs j set due_at = %(now)s, unreachable_since = null, unreachable_count = 0
from agentic_engine.runs r join agentic_engine.functions f on f.id = r.function_id
where r.id = j.run_id and f.app = %(app)s and j.unreachable_since is not null;

-- name: active_functions
-- Every function that events may start.
select id, config from agentic_engine.functions where active order by id;

-- name: function_config
-- One function that may be started.
select config from agentic_engine.functions where id = %(id)s and active;

-- name: claim_start
-- Take a start key for a function for a while; no row where it is taken already.
insert into agentic_engine.starts (function_id, key, until)
values (%(function_id)s, %(key)s, %(until)s)
on conflict (function_id, key) do update set until = excluded.until where agentic_engine.starts.until <= %(now)s
returning key;

-- name: insert_run
-- A new run.
insert into agentic_engine.runs
    (id, function_id, status, event, events, slots, slot_limits, priority, singleton, start_by, finish_s,
     parent_run, parent_step, started_at)
values (%(id)s, %(function_id)s, 'running', %(event)s, %(events)s, %(slots)s::text[], %(slot_limits)s::int[],
        %(priority)s, %(singleton)s, %(start_by)s, %(finish_s)s, %(parent_run)s, %(parent_step)s, %(now)s);

-- name: begin_run
-- The run was called for the first time: it is no longer late to start, and from now on it may be late to finish.
update agentic_engine.runs
set begun_at = %(begun_at)s, start_by = null, finish_by = %(begun_at)s + finish_s * interval '1 second'
where id = %(id)s and status = 'running' and begun_at is null;

-- name: late_runs
-- Runs that were not called in time, and runs that did not end in time.
select id, case when finish_by <= %(now)s then 'finish' else 'start' end as late from agentic_engine.runs r
where status = 'running'
  and (finish_by <= %(now)s
    or (start_by <= %(now)s and not exists (
        select 1 from agentic_engine.jobs j where j.run_id = r.id and j.lease_expires_at > %(now)s)))
order by id limit 200;

-- name: running_singleton
-- The run that holds a singleton key.
select id from agentic_engine.runs where function_id = %(function_id)s and singleton = %(singleton)s and status = 'running';

-- name: held_events
-- What a debounce or a batch holds so far.
select events, first_at from agentic_engine.held
where function_id = %(function_id)s and kind = %(kind)s and key = %(key)s;

-- name: hold_events
-- What a debounce or a batch holds now, and until when.
insert into agentic_engine.held (function_id, kind, key, events, first_at, due_at)
values (%(function_id)s, %(kind)s, %(key)s, %(events)s, %(now)s, %(due_at)s)
on conflict (function_id, kind, key) do update set events = excluded.events, due_at = excluded.due_at;

-- name: drop_held
-- A debounce or a batch is over.
delete from agentic_engine.held where function_id = %(function_id)s and kind = %(kind)s and key = %(key)s;

-- name: due_held
-- Debounces and batches whose time has come; no `config` where the function is gone.
select h.function_id, h.kind, h.key, h.events, case when f.active then f.config end as config
from agentic_engine.held h join agentic_engine.functions f on f.id = h.function_id
where h.due_at <= %(now)s order by h.due_at, h.function_id, h.key limit 200;

-- name: rate_used
-- Up to when a rate is used up.
select used_until from agentic_engine.rates where function_id = %(function_id)s and kind = %(kind)s and key = %(key)s;

-- name: use_rate
-- One more start of a rate.
insert into agentic_engine.rates (function_id, kind, key, used_until)
values (%(function_id)s, %(kind)s, %(key)s, %(used_until)s)
on conflict (function_id, kind, key) do update set used_until = excluded.used_until;

-- name: prune_rates
-- Rates that no longer hold anything back.
delete from agentic_engine.rates where used_until <= %(now)s;

-- name: tell_itself
-- An event about an ended run, on its way.
insert into agentic_engine.inbox (event) values (%(event)s);

-- name: take_inbox
-- The events on their way, in order; gone with the transaction that takes them in.
with taken as (delete from agentic_engine.inbox returning id, event) select event from taken order by id;

-- name: inbox_size
-- How many events are on their way.
select count(*) as size from agentic_engine.inbox;

-- name: running
-- A run that has not ended.
select id, function_id, event, stack, parent_run, parent_step, started_at
from agentic_engine.runs where id = %(id)s and status = 'running';

-- name: is_run
-- Whether there is or was such a run.
select 1 as known from agentic_engine.runs where id = %(id)s;

-- name: running_of_function
-- The runs of a function that a cancellation may hit.
select id, event, started_at from agentic_engine.runs
where function_id = %(function_id)s and status = 'running' order by id;

-- name: change_slots
-- A run counts against other limits from now on.
update agentic_engine.runs set slots = %(slots)s::text[], slot_limits = %(slot_limits)s::int[]
where id = %(id)s and status = 'running';

-- name: end_run
-- A run ends, once.
update agentic_engine.runs set status = %(status)s, result = %(result)s, ended_at = %(now)s
where id = %(id)s and status = 'running'
returning id, function_id, event, events, parent_run, parent_step;

-- name: drop_jobs
-- Calls that an ended run no longer needs.
delete from agentic_engine.jobs where run_id = %(run_id)s;

-- name: drop_pauses
-- Sleeps and waits that an ended run no longer needs.
delete from agentic_engine.pauses where run_id = %(run_id)s;

-- name: learn_version
-- The protocol version the app answers with, which later calls of the run carry.
update agentic_engine.runs set version = %(version)s where id = %(id)s and version <> %(version)s;

-- name: insert_step
-- The memo of a finished step; the first one stands.
insert into agentic_engine.steps (run_id, id, name, memo, done_at)
values (%(run_id)s, %(id)s, %(name)s, %(memo)s, %(now)s)
on conflict (run_id, id) do nothing;

-- name: push_stack
-- A finished step joins the order that the app is told.
update agentic_engine.runs set stack = stack || %(step)s::text where id = %(run_id)s;

-- name: steps_of_run
-- The memos of a run, in the order the steps finished.
select id, name, memo from agentic_engine.steps where run_id = %(run_id)s order by done_at, id;

-- name: is_known_step
-- Whether a step is finished, planned or waiting already.
select 1 as known from agentic_engine.steps where run_id = %(run_id)s and id = %(step)s
union all select 1 from agentic_engine.jobs where run_id = %(run_id)s and step = %(step)s
union all select 1 from agentic_engine.pauses where run_id = %(run_id)s and step = %(step)s;

-- name: outstanding
-- How many calls and pauses a run still has, and how many steps it has finished.
select (select count(*) from agentic_engine.jobs where run_id = %(run_id)s)
     + (select count(*) from agentic_engine.pauses where run_id = %(run_id)s) as open,
       (select count(*) from agentic_engine.steps where run_id = %(run_id)s) as done;

-- name: plan_job
-- A call that is due now. One for the same step that is on its way already is followed by another.
insert into agentic_engine.jobs (run_id, step, due_at) values (%(run_id)s, %(step)s, %(now)s)
on conflict (run_id, step) do update set again = agentic_engine.jobs.leased_by is not null;

-- name: first_job
-- The first call of a run.
insert into agentic_engine.jobs (run_id, step, due_at) values (%(run_id)s, %(step)s, %(due_at)s);

-- name: insert_pause
-- A step that ends without the app.
insert into agentic_engine.pauses (run_id, step, name, kind, due_at, event_name, expression, race)
values (%(run_id)s, %(step)s, %(name)s, %(kind)s, %(due_at)s, %(event_name)s, %(expression)s, %(race)s);

-- name: take_pause
-- The pause of a step, removed: it is over.
delete from agentic_engine.pauses where run_id = %(run_id)s and step = %(step)s returning run_id, step, name, kind, race;

-- name: waiting_for
-- Waits that an event of this name may end.
select p.run_id, p.step, p.expression, r.event from agentic_engine.pauses p
join agentic_engine.runs r on r.id = p.run_id
where p.kind = 'event' and p.event_name = %(event_name)s and p.due_at > %(now)s
order by p.run_id, p.step;

-- name: due_pauses
-- Sleeps that are over and waits that ran out.
select run_id, step, kind from agentic_engine.pauses where due_at <= %(now)s order by due_at, run_id, step limit 200;

-- name: due_crons
-- Cron triggers whose time has come.
select c.function_id, c.expression, c.next_at, f.config
from agentic_engine.crons c join agentic_engine.functions f on f.id = c.function_id
where c.next_at <= %(now)s order by c.next_at, c.function_id;

-- name: move_cron
-- When the trigger fires next.
update agentic_engine.crons set next_at = %(next_at)s where function_id = %(function_id)s and expression = %(expression)s;

-- name: claim_job
-- Lease the next due call that no other engine holds and no concurrency limit stops; a priority counts as waited longer.
update agentic_engine.jobs set leased_by = %(engine)s, lease_expires_at = %(lease_expires_at)s
where id = (
    select j.id from agentic_engine.jobs j join agentic_engine.runs r on r.id = j.run_id
    where j.due_at <= %(now)s and (j.lease_expires_at is null or j.lease_expires_at <= %(now)s)
      and not exists (
        select 1 from unnest(r.slots, r.slot_limits) as mine (slot, top)
        where mine.top <= (
            select count(*) from agentic_engine.jobs k join agentic_engine.runs o on o.id = k.run_id
            where k.lease_expires_at > %(now)s and mine.slot = any(o.slots)))
    order by j.due_at - r.priority * interval '1 second', j.id limit 1
    for update of j skip locked)
returning id;

-- name: call_of_job
-- All that a call carries.
select j.id, j.run_id, j.step, j.attempt, j.unreachable_since, j.unreachable_count, r.function_id, r.event, r.events,
       r.stack, r.version, r.begun_at is not null as begun, f.config, a.url,
       exists (select 1 from agentic_engine.jobs o where o.run_id = j.run_id and o.id <> j.id)
         or exists (select 1 from agentic_engine.pauses p where p.run_id = j.run_id) as has_company
from agentic_engine.jobs j
join agentic_engine.runs r on r.id = j.run_id
join agentic_engine.functions f on f.id = r.function_id
join agentic_engine.apps a on a.name = f.app
where j.id = %(id)s;

-- name: renew_leases
-- The calls in flight are still watched over.
update agentic_engine.jobs set lease_expires_at = %(lease_expires_at)s
where leased_by = %(engine)s and id = any(%(ids)s::bigint[]);

-- name: release_leases
-- An orderly stop hands its calls to whoever comes next.
update agentic_engine.jobs set leased_by = null, lease_expires_at = null where leased_by = %(engine)s;

-- name: finish_job
-- A call has its answer. No row where the run ended meanwhile or another engine took the call over.
delete from agentic_engine.jobs where id = %(id)s and leased_by = %(engine)s returning run_id, step, again;

-- name: retry_job
-- The call failed and is made again later.
update agentic_engine.jobs
set attempt = attempt + 1, due_at = %(due_at)s, unreachable_since = null, unreachable_count = 0,
    leased_by = null, lease_expires_at = null
where id = %(id)s and leased_by = %(engine)s;

-- name: reconnect_job
-- The call never reached the app and is made again soon; no attempt is spent.
update agentic_engine.jobs
set due_at = %(due_at)s, unreachable_since = coalesce(unreachable_since, %(now)s),
    unreachable_count = unreachable_count + 1, leased_by = null, lease_expires_at = null
where id = %(id)s and leased_by = %(engine)s;

-- name: next_due
-- When something falls due by itself.
select min(at) as at from (
    select due_at as at from agentic_engine.jobs where leased_by is null
    union all select lease_expires_at from agentic_engine.jobs where leased_by is not null
    union all select due_at from agentic_engine.pauses
    union all select due_at from agentic_engine.held
    union all select least(start_by, finish_by) from agentic_engine.runs where status = 'running'
    union all select next_at from agentic_engine.crons) due
where at > %(now)s;

-- name: prune_starts
-- Start keys that no longer hold anything back.
delete from agentic_engine.starts where until <= %(now)s;

-- name: prune_runs
-- Runs that ended long ago, with their steps.
delete from agentic_engine.runs where ended_at <= %(before)s;

-- name: all_runs
-- Every run, for people and tests.
select r.id, r.function_id, r.status, r.event, r.events, r.result, r.started_at, r.ended_at
from agentic_engine.runs r where %(function_id)s::text is null or r.function_id = %(function_id)s order by r.started_at, r.id;

-- name: all_jobs
-- Every call that is owed, for people and tests.
select run_id, step, attempt, due_at, unreachable_since is not null as unreachable, leased_by is not null as in_flight
from agentic_engine.jobs order by id;

-- name: all_pauses
-- Every sleep and wait, for people and tests.
select run_id, step, name, kind, due_at from agentic_engine.pauses order by run_id, step;
