-- Why: rules are rows, so that a change counts at the next call of every process. A changed rule is a new row: the superseded one
-- stays, because decisions name it by version. One counter per organization, and one for the platform, lets a process keep compiled
-- rules for as long as the preflight reads the same two numbers.

create table agent.policy_rules (
    id uuid not null,
    version int not null,
    -- Null: the rule counts for every organization of this database.
    organization_id uuid,
    name text not null,
    effect text not null,
    tool text not null default '*',
    -- Null in the next three: any.
    side_effects text[],
    risk text[],
    egress text,
    -- CEL text; null: always.
    condition text,
    covers_external boolean not null default false,
    four_eyes boolean not null default false,
    reason text not null default '',
    enabled boolean not null default true,
    created_by uuid,
    created_at timestamptz not null default clock_timestamp(),
    superseded_by uuid,
    superseded_at timestamptz,
    constraint policy_rules_pk primary key (id, version),
    constraint policy_rules_version_positive check (version > 0),
    constraint policy_rules_effect_known check (effect in ('deny', 'require_approval', 'allow')),
    constraint policy_rules_side_effects_known check (
        side_effects <@ array['none', 'read', 'write', 'send'] and cardinality(side_effects) > 0
    ),
    constraint policy_rules_risk_known check (risk <@ array['low', 'medium', 'high'] and cardinality(risk) > 0),
    constraint policy_rules_egress_known check (egress in ('none', 'open')),
    constraint policy_rules_condition_bounded check (octet_length(condition) between 1 and 4096),
    constraint policy_rules_external_is_for_allow check (not covers_external or effect = 'allow'),
    constraint policy_rules_four_eyes_is_for_approval check (not four_eyes or effect = 'require_approval')
);
-- One live row a name, whoever writes it.
create unique index policy_rules_live_once on agent.policy_rules (organization_id, name) nulls not distinct where superseded_at is null;
create index policy_rules_history on agent.policy_rules (organization_id, name, version desc);

create table agent.policy_versions (
    -- An organization, or the nil UUID for the rules of the platform.
    scope uuid not null,
    version bigint not null,
    constraint policy_versions_pk primary key (scope)
);

-- In the trigger, so that no change of a rule is missed, one made by hand included.
create function agent.count_policy_change() returns trigger
language plpgsql set search_path = '' as $$
declare
    nobody constant uuid := '00000000-0000-0000-0000-000000000000';
begin
    if tg_op <> 'DELETE' then
        insert into agent.policy_versions as v (scope, version) values (coalesce(new.organization_id, nobody), 1)
        on conflict (scope) do update set version = v.version + 1;
    end if;
    if tg_op <> 'INSERT' and (tg_op = 'DELETE' or old.organization_id is distinct from new.organization_id) then
        insert into agent.policy_versions as v (scope, version) values (coalesce(old.organization_id, nobody), 1)
        on conflict (scope) do update set version = v.version + 1;
    end if;
    return null;
end
$$;

create trigger policy_rules_counted after insert or update or delete on agent.policy_rules
    for each row execute function agent.count_policy_change();

alter table agent.policy_rules enable row level security;
alter table agent.policy_versions enable row level security;
revoke all on agent.policy_rules, agent.policy_versions from public, anon, authenticated;
revoke all on function agent.count_policy_change() from public, anon, authenticated;
grant select, insert, update, delete on agent.policy_rules, agent.policy_versions to service_role;
grant execute on function agent.count_policy_change() to service_role;
