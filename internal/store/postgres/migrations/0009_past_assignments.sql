-- +goose Up
-- Assignments that have ended, so that an auditor can see who had a role at a time. An older
-- program does not record the end of an assignment.
create table past_assignments (
    tenant_id   uuid not null,
    user_id     uuid not null,
    role_id     uuid not null,
    role_key    text collate "C",
    role_name   text not null, -- the key and the name of the role at the end
    departments text,
    expires_at  bigint not null,
    granted_by  uuid,
    granted_at  bigint not null,
    started_at  bigint not null,
    ended_at    bigint not null, -- it was removed or replaced
    primary key (tenant_id, user_id, role_id, started_at)
);
create index past_assignments_role on past_assignments (tenant_id, role_id, user_id);
create index past_assignments_ended on past_assignments (tenant_id, ended_at);

-- When the assignment began again, with the restore of its user. Null: granted_at.
alter table assignments add column started_at bigint;

-- When a migration was applied. Past assignments are recorded since the time of this one.
alter table compatibility add column applied_at bigint;
insert into compatibility (migration, oldest, applied_at) values (9, 4, floor(extract(epoch from clock_timestamp()) * 1000000));

alter table past_assignments enable row level security;
alter table past_assignments force row level security;
create policy tenant_isolation on past_assignments
    using (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
    with check (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid);
