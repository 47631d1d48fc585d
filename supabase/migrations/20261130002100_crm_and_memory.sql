-- Why: tools keep companies, people, lists and what they have learned for a product that brings no tables of its own. They stand in
-- schema public, where a product's own stand, under prefixes of their own, so that both are reached by one scoped client.
--
-- A key is unique among the rows that are not deleted. The interface of Supabase names the columns of a unique rule and never its
-- condition, so a partial index would not do: generated columns hold the key of a live row and null for any other, and nulls are
-- distinct. Canonical forms (keys, search_text) are the writer's; nobody but the service writes.

create function agent.row_touched() returns trigger
language plpgsql set search_path = '' as $$
begin
    new.updated_at := clock_timestamp();
    return new;
end
$$;
revoke all on function agent.row_touched() from public, anon, authenticated;
grant execute on function agent.row_touched() to service_role;

create table public.crm_companies (
    organization_id uuid not null,
    id uuid not null default gen_random_uuid(),
    name text not null,
    name_key text not null,
    domain text,
    domain_key text,
    industry text,
    city text,
    country text,
    notes text,
    -- Folded text that a search looks through.
    search_text text not null default '',
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    deleted_at timestamptz,
    -- A domain is one company; a name is one among companies whose domain is not known.
    live_domain_key text generated always as (case when deleted_at is null then domain_key end) stored,
    live_name_key text generated always as (case when deleted_at is null and domain_key is null then name_key end) stored,
    constraint crm_companies_pk primary key (organization_id, id),
    constraint crm_companies_one_per_domain unique (organization_id, live_domain_key),
    constraint crm_companies_one_per_name unique (organization_id, live_name_key),
    constraint crm_companies_named check (name <> '' and name_key <> ''),
    constraint crm_companies_domain_has_key check ((domain is null) = (domain_key is null) and domain_key <> '')
);
create index crm_companies_by_name on public.crm_companies (organization_id, name_key);
create index crm_companies_by_age on public.crm_companies (organization_id, created_at, id);

create table public.crm_people (
    organization_id uuid not null,
    id uuid not null default gen_random_uuid(),
    name text not null,
    name_key text not null,
    email text,
    email_key text,
    company_id uuid,
    job_title text,
    phone text,
    linkedin_url text,
    city text,
    country text,
    notes text,
    search_text text not null default '',
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    deleted_at timestamptz,
    -- An email address is one person; a name is one within a company, or outside of any, among people whose address is not known.
    live_email_key text generated always as (case when deleted_at is null then email_key end) stored,
    live_name_key text generated always as (
        case when deleted_at is null and email_key is null then coalesce(company_id::text, '-') || ' ' || name_key end
    ) stored,
    constraint crm_people_pk primary key (organization_id, id),
    constraint crm_people_one_per_email unique (organization_id, live_email_key),
    constraint crm_people_one_per_name unique (organization_id, live_name_key),
    constraint crm_people_company foreign key (organization_id, company_id) references public.crm_companies (organization_id, id),
    constraint crm_people_named check (name <> '' and name_key <> ''),
    constraint crm_people_email_has_key check ((email is null) = (email_key is null) and email_key <> '')
);
create index crm_people_by_name on public.crm_people (organization_id, name_key);
create index crm_people_by_age on public.crm_people (organization_id, created_at, id);
create index crm_people_by_company on public.crm_people (organization_id, company_id) where company_id is not null;

create table public.crm_lists (
    organization_id uuid not null,
    id uuid not null default gen_random_uuid(),
    name text not null,
    name_key text not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    deleted_at timestamptz,
    live_name_key text generated always as (case when deleted_at is null then name_key end) stored,
    constraint crm_lists_pk primary key (organization_id, id),
    constraint crm_lists_one_per_name unique (organization_id, live_name_key),
    constraint crm_lists_named check (name <> '' and name_key <> '')
);

create table public.crm_list_members (
    organization_id uuid not null,
    list_id uuid not null,
    person_id uuid not null,
    added_at timestamptz not null default clock_timestamp(),
    constraint crm_list_members_pk primary key (organization_id, list_id, person_id),
    constraint crm_list_members_list foreign key (organization_id, list_id)
        references public.crm_lists (organization_id, id) on delete cascade,
    constraint crm_list_members_person foreign key (organization_id, person_id)
        references public.crm_people (organization_id, id) on delete cascade
);
create index crm_list_members_by_person on public.crm_list_members (organization_id, person_id);

-- What was observed about somebody, and what they prefer. `trust` is that of where it came from and never rises by being stored.
create table public.agent_memories (
    organization_id uuid not null,
    id uuid not null default gen_random_uuid(),
    subject_kind text not null,
    -- The id of a person, company or user, as text.
    subject_ref text not null,
    kind text not null,
    key text not null,
    text text not null,
    -- Who or what said so.
    source text,
    trust text not null default 'external',
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    deleted_at timestamptz,
    live_key text generated always as (case when deleted_at is null then key end) stored,
    constraint agent_memories_pk primary key (organization_id, id),
    constraint agent_memories_one_per_key unique (organization_id, subject_kind, subject_ref, kind, live_key),
    constraint agent_memories_subject_known check (subject_kind in ('person', 'company', 'user')),
    constraint agent_memories_subject_named check (length(subject_ref) between 1 and 200),
    constraint agent_memories_kind_known check (kind in ('observation', 'preference')),
    constraint agent_memories_key_named check (length(key) between 1 and 200),
    constraint agent_memories_says_something check (length(text) between 1 and 4000),
    constraint agent_memories_trust_known check (trust in ('external', 'internal', 'user', 'platform'))
);

create trigger crm_companies_touched before update on public.crm_companies
    for each row execute function agent.row_touched();
create trigger crm_people_touched before update on public.crm_people
    for each row execute function agent.row_touched();
create trigger crm_lists_touched before update on public.crm_lists
    for each row execute function agent.row_touched();
create trigger agent_memories_touched before update on public.agent_memories
    for each row execute function agent.row_touched();

-- A signed-in user reads the rows of the organization that the token names, and writes none: keys have to stay canonical. The claim is
-- taken from the half of the token that its bearer cannot write. The service's key passes row level security and filters itself.
alter table public.crm_companies enable row level security;
alter table public.crm_people enable row level security;
alter table public.crm_lists enable row level security;
alter table public.crm_list_members enable row level security;
alter table public.agent_memories enable row level security;

create policy crm_companies_of_organization on public.crm_companies for select to authenticated
    using (organization_id = ((select auth.jwt()) -> 'app_metadata' ->> 'organization_id')::uuid);
create policy crm_people_of_organization on public.crm_people for select to authenticated
    using (organization_id = ((select auth.jwt()) -> 'app_metadata' ->> 'organization_id')::uuid);
create policy crm_lists_of_organization on public.crm_lists for select to authenticated
    using (organization_id = ((select auth.jwt()) -> 'app_metadata' ->> 'organization_id')::uuid);
create policy crm_list_members_of_organization on public.crm_list_members for select to authenticated
    using (organization_id = ((select auth.jwt()) -> 'app_metadata' ->> 'organization_id')::uuid);
-- What was noticed about a user is that user's to read, and no colleague's.
create policy agent_memories_of_organization on public.agent_memories for select to authenticated
    using (
        organization_id = ((select auth.jwt()) -> 'app_metadata' ->> 'organization_id')::uuid
        and (subject_kind <> 'user' or subject_ref = (select auth.uid())::text)
    );

revoke all on public.crm_companies, public.crm_people, public.crm_lists, public.crm_list_members, public.agent_memories
    from public, anon, authenticated;
grant select on public.crm_companies, public.crm_people, public.crm_lists, public.crm_list_members, public.agent_memories
    to authenticated;
revoke all on public.crm_companies, public.crm_people, public.crm_lists, public.crm_list_members, public.agent_memories
    from service_role;
grant select, insert, update, delete
    on public.crm_companies, public.crm_people, public.crm_lists, public.crm_list_members, public.agent_memories to service_role;
