-- +goose Up
-- Groups of users. The roles of a group apply to its members.
create table groups (
    tenant_id   uuid    not null,
    id          uuid    not null,
    name        text    not null,
    name_key    text collate "C" not null,
    words       text collate "C" not null, -- " support berlin"
    description text    not null,
    external_id text collate "C",
    created_at  bigint not null,
    updated_at  bigint not null,
    version     bigint not null,
    deletion    uuid,             -- the event of the deletion, while members are still to be removed; null: not deleted
    primary key (tenant_id, id)
);
create unique index groups_name on groups (tenant_id, name_key);
create unique index groups_external_id on groups (tenant_id, external_id) where external_id is not null;
create index groups_deletion on groups (tenant_id, deletion) where deletion is not null;

create table group_members (
    tenant_id  uuid    not null,
    user_id    uuid    not null,
    group_id   uuid    not null,
    added_by   uuid,             -- null: an operator
    added_at   bigint not null,
    primary key (tenant_id, user_id, group_id)
);
create index group_members_group on group_members (tenant_id, group_id, user_id);

create table group_roles (
    tenant_id   uuid    not null,
    group_id    uuid    not null,
    role_id     uuid    not null,
    departments text,             -- a JSON array of names; null: everywhere
    expires_at  bigint not null, -- never: the largest integer
    granted_by  uuid,             -- null: an operator
    granted_at  bigint not null,
    primary key (tenant_id, group_id, role_id)
);
create index group_roles_role on group_roles (tenant_id, role_id, group_id);

-- Memberships and roles of groups that have ended, so that an auditor can see who had a role at a time.
create table past_group_members (
    tenant_id  uuid    not null,
    user_id    uuid    not null,
    group_id   uuid    not null,
    group_name text    not null, -- at the end
    added_by   uuid,
    added_at   bigint not null,
    ended_at   bigint not null,
    primary key (tenant_id, user_id, group_id, added_at)
);
create index past_group_members_group on past_group_members (tenant_id, group_id, user_id);
create index past_group_members_ended on past_group_members (tenant_id, ended_at);

create table past_group_roles (
    tenant_id   uuid    not null,
    group_id    uuid    not null,
    role_id     uuid    not null,
    role_key    text collate "C",
    role_name   text    not null, -- the key and the name of the role at the end
    departments text,
    expires_at  bigint not null,
    granted_by  uuid,
    granted_at  bigint not null,
    ended_at    bigint not null, -- it was removed or replaced
    primary key (tenant_id, group_id, role_id, granted_at)
);
create index past_group_roles_role on past_group_roles (tenant_id, role_id, group_id);
create index past_group_roles_ended on past_group_roles (tenant_id, ended_at);

-- An older program does not see the roles that users have through groups.
insert into compatibility (migration, oldest) values (22, 22);

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['groups', 'group_members', 'group_roles', 'past_group_members', 'past_group_roles']
    loop
        if exists (select from pg_extension where extname = 'citus') then
            if exists (select from pg_dist_partition where logicalrelid = 'users'::regclass) then
                perform create_distributed_table(tenant_table, 'tenant_id', colocate_with => 'users');
            end if;
        end if;
    end loop;
end
$$;
-- +goose StatementEnd

alter table group_members add constraint group_members_user
    foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade;
alter table group_members add constraint group_members_group
    foreign key (tenant_id, group_id) references groups (tenant_id, id) on delete cascade;
alter table group_roles add constraint group_roles_group
    foreign key (tenant_id, group_id) references groups (tenant_id, id) on delete cascade;
alter table group_roles add constraint group_roles_role
    foreign key (tenant_id, role_id) references roles (tenant_id, id) on delete cascade;

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['groups', 'group_members', 'group_roles', 'past_group_members', 'past_group_roles']
    loop
        execute format('alter table %I enable row level security', tenant_table);
        execute format('alter table %I force row level security', tenant_table);
        execute format($policy$
            create policy tenant_isolation on %I
            using (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
            with check (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
            $policy$, tenant_table);
    end loop;
end
$$;
-- +goose StatementEnd
