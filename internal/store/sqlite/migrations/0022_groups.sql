-- +goose Up
-- Groups of users. The roles of a group apply to its members.
create table groups (
    tenant_id   blob    not null,
    id          blob    not null,
    name        text    not null,
    name_key    text    not null,
    words       text    not null, -- " support berlin"
    description text    not null,
    external_id text,
    created_at  integer not null,
    updated_at  integer not null,
    version     integer not null,
    deletion    blob,             -- the event of the deletion, while members are still to be removed; null: not deleted
    primary key (tenant_id, id)
) strict, without rowid;
create unique index groups_name on groups (tenant_id, name_key);
create unique index groups_external_id on groups (tenant_id, external_id) where external_id is not null;
create index groups_deletion on groups (tenant_id, deletion) where deletion is not null;

create table group_members (
    tenant_id  blob    not null,
    user_id    blob    not null,
    group_id   blob    not null,
    added_by   blob,             -- null: an operator
    added_at   integer not null,
    primary key (tenant_id, user_id, group_id),
    constraint group_members_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
    constraint group_members_group foreign key (tenant_id, group_id) references groups (tenant_id, id) on delete cascade
) strict, without rowid;
create index group_members_group on group_members (tenant_id, group_id, user_id);

create table group_roles (
    tenant_id   blob    not null,
    group_id    blob    not null,
    role_id     blob    not null,
    departments text,             -- a JSON array of names; null: everywhere
    expires_at  integer not null, -- never: the largest integer
    granted_by  blob,             -- null: an operator
    granted_at  integer not null,
    primary key (tenant_id, group_id, role_id),
    constraint group_roles_group foreign key (tenant_id, group_id) references groups (tenant_id, id) on delete cascade,
    constraint group_roles_role foreign key (tenant_id, role_id) references roles (tenant_id, id) on delete cascade
) strict, without rowid;
create index group_roles_role on group_roles (tenant_id, role_id, group_id);

-- Memberships and roles of groups that have ended, so that an auditor can see who had a role at a time.
create table past_group_members (
    tenant_id  blob    not null,
    user_id    blob    not null,
    group_id   blob    not null,
    group_name text    not null, -- at the end
    added_by   blob,
    added_at   integer not null,
    ended_at   integer not null,
    primary key (tenant_id, user_id, group_id, added_at)
) strict, without rowid;
create index past_group_members_group on past_group_members (tenant_id, group_id, user_id);
create index past_group_members_ended on past_group_members (tenant_id, ended_at);

create table past_group_roles (
    tenant_id   blob    not null,
    group_id    blob    not null,
    role_id     blob    not null,
    role_key    text,
    role_name   text    not null, -- the key and the name of the role at the end
    departments text,
    expires_at  integer not null,
    granted_by  blob,
    granted_at  integer not null,
    ended_at    integer not null, -- it was removed or replaced
    primary key (tenant_id, group_id, role_id, granted_at)
) strict, without rowid;
create index past_group_roles_role on past_group_roles (tenant_id, role_id, group_id);
create index past_group_roles_ended on past_group_roles (tenant_id, ended_at);

-- An older program does not see the roles that users have through groups.
insert into compatibility (migration, oldest) values (22, 22);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('groups', 'groups', '100000 1000 1'), ('groups', 'groups_name', '100000 1000 1'),
    ('groups', 'groups_external_id', '100000 1000 1'), ('groups', 'groups_deletion', '10 2 1'),
    ('group_members', 'group_members', '1000000 10000 5 1'), ('group_members', 'group_members_group', '1000000 10000 50 1'),
    ('group_roles', 'group_roles', '50000 200 5 1'), ('group_roles', 'group_roles_role', '50000 200 5 1'),
    ('past_group_members', 'past_group_members', '1000000 10000 5 2 1'), ('past_group_members', 'past_group_members_group', '1000000 10000 50 2'),
    ('past_group_members', 'past_group_members_ended', '1000000 10000 1'),
    ('past_group_roles', 'past_group_roles', '50000 200 5 2 1'), ('past_group_roles', 'past_group_roles_role', '50000 200 5 2'),
    ('past_group_roles', 'past_group_roles_ended', '50000 200 1');
analyze sqlite_schema; -- reads the figures
