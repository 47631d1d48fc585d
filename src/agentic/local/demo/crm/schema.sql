-- The demo product's own tables. Made when the demo starts, safe to run again. Row level security is on and no policy opens
-- them: only the owner, which the demo connects as, reads them, and it filters by organization_id itself.

create schema if not exists demo_crm;

create table if not exists demo_crm.companies (
    organization_id uuid not null,
    id uuid not null default gen_random_uuid(),
    name text not null,
    name_key text not null,
    domain text,
    industry text,
    city text,
    country text,
    created_at timestamptz not null default clock_timestamp(),
    constraint companies_pk primary key (organization_id, id),
    constraint companies_domain_lower check (domain = lower(domain))
);
-- A domain is one company; a name is one only among companies whose domain is not known.
create unique index if not exists companies_one_per_domain on demo_crm.companies (organization_id, domain) where domain is not null;
create unique index if not exists companies_one_per_name on demo_crm.companies (organization_id, name_key) where domain is null;
create index if not exists companies_by_name on demo_crm.companies (organization_id, name_key);

create table if not exists demo_crm.people (
    organization_id uuid not null,
    id uuid not null default gen_random_uuid(),
    position int not null,
    name text not null,
    email text,
    company_id uuid,
    job_title text,
    phone text,
    city text,
    country text,
    notes text,
    -- Folded name, email, title, company and place: what a search looks through.
    search_text text not null,
    constraint people_pk primary key (organization_id, id),
    constraint people_company foreign key (organization_id, company_id) references demo_crm.companies (organization_id, id)
);
create unique index if not exists people_one_per_email on demo_crm.people (organization_id, email) where email is not null;

create table if not exists demo_crm.lists (
    organization_id uuid not null,
    name_key text not null,
    name text not null,
    constraint lists_pk primary key (organization_id, name_key)
);

create table if not exists demo_crm.list_members (
    organization_id uuid not null,
    list_key text not null,
    person_id uuid not null,
    added_at timestamptz not null default clock_timestamp(),
    constraint list_members_pk primary key (organization_id, list_key, person_id),
    constraint list_members_list foreign key (organization_id, list_key) references demo_crm.lists (organization_id, name_key) on delete cascade,
    constraint list_members_person foreign key (organization_id, person_id) references demo_crm.people (organization_id, id) on delete cascade
);

alter table demo_crm.companies enable row level security;
alter table demo_crm.people enable row level security;
alter table demo_crm.lists enable row level security;
alter table demo_crm.list_members enable row level security;
