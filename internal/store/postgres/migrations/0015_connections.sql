-- +goose Up
-- Identity providers (OpenID Connect) with which the users of a tenant can sign in.
create table connections (
    tenant_id      uuid   not null,
    id             uuid   not null,
    name           text   not null,
    name_key       text   collate "C" not null,
    issuer         text   collate "C" not null,
    client_id      text   not null,
    secret         bytea  not null, -- encrypted
    domains        text   not null, -- a JSON array
    linking        text   collate "C" not null,
    provisioning   text   not null, -- JSON; null: the connection creates no users
    provisioned_by uuid,            -- who last set the provisioning; null: an operator
    second_factor  text   collate "C" not null,
    acr_values     text   not null, -- a JSON array
    amr_values     text   not null, -- a JSON array
    created_at     bigint not null,
    updated_at     bigint not null,
    version        bigint not null,
    primary key (tenant_id, id)
);
create unique index connections_name on connections (tenant_id, name_key);
create unique index connections_issuer on connections (tenant_id, issuer);

-- The accounts at identity providers with which users can sign in.
create table identities (
    tenant_id     uuid   not null,
    id            uuid   not null,
    user_id       uuid   not null,
    connection_id uuid   not null,
    issuer        text   collate "C" not null,
    subject       text   collate "C" not null,
    email         text   not null, -- as the provider sent it
    created_at    bigint not null,
    last_used_at  bigint not null, -- 0: never
    primary key (tenant_id, id)
);
create unique index identities_subject on identities (tenant_id, issuer, subject);
create index identities_user on identities (tenant_id, user_id, id);
create index identities_connection on identities (tenant_id, connection_id);

-- The identity with which a session began. An older program does not set it.
alter table sessions add column identity_id uuid;
alter table sessions add column connection_id uuid;
create index sessions_connection on sessions (tenant_id, connection_id) where connection_id is not null;
insert into compatibility (migration, oldest) values (15, 4);

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['connections', 'identities']
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

alter table identities add constraint identities_user
    foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade;
alter table identities add constraint identities_connection
    foreign key (tenant_id, connection_id) references connections (tenant_id, id) on delete cascade;

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['connections', 'identities']
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
