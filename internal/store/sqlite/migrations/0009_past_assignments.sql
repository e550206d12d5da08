-- +goose Up
-- Assignments that have ended, so that an auditor can see who had a role at a time. An older
-- program does not record the end of an assignment.
create table past_assignments (
    tenant_id   blob not null,
    user_id     blob not null,
    role_id     blob not null,
    role_key    text,
    role_name   text not null, -- the key and the name of the role at the end
    departments text,
    expires_at  integer not null,
    granted_by  blob,
    granted_at  integer not null,
    started_at  integer not null,
    ended_at    integer not null, -- it was removed or replaced
    primary key (tenant_id, user_id, role_id, started_at)
) strict, without rowid;
create index past_assignments_role on past_assignments (tenant_id, role_id, user_id);
create index past_assignments_ended on past_assignments (tenant_id, ended_at);

-- When the assignment began again, with the restore of its user. Null: granted_at.
alter table assignments add column started_at integer;

-- When a migration was applied. Past assignments are recorded since the time of this one.
alter table compatibility add column applied_at integer;
insert into compatibility (migration, oldest, applied_at) values (9, 4, cast(unixepoch('subsec') * 1000000 as integer));

insert into sqlite_stat1 (tbl, idx, stat) values
    ('past_assignments', 'past_assignments', '1000000 10000 10 2 1'), ('past_assignments', 'past_assignments_role', '1000000 10000 100 2'),
    ('past_assignments', 'past_assignments_ended', '1000000 10000 1');
analyze sqlite_schema; -- reads the figures
