-- +goose Up
-- The logo of a tenant. Its description is in the row of the tenant, which each node caches.
-- The image is in another table, because only the pages before the sign-in read it.
alter table tenants add column logo text not null default 'null'; -- JSON; null: the tenant has no logo
create table tenant_logos (
    tenant_id  uuid not null primary key,
    media_type text collate "C" not null,
    content    bytea not null
);
insert into compatibility (migration, oldest) values (8, 4);

alter table tenant_logos enable row level security;
alter table tenant_logos force row level security;
create policy tenant_isolation on tenant_logos
    using (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
    with check (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid);
