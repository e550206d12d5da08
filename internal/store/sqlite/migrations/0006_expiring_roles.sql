-- +goose Up
-- Assignments that expire soon, for the summary of a tenant. Most assignments never expire.
create index assignments_expiry on assignments (tenant_id, expires_at) where expires_at < 9223372036854775807;
create index service_account_roles_expiry on service_account_roles (tenant_id, expires_at) where expires_at < 9223372036854775807;
insert into sqlite_stat1 (tbl, idx, stat) values
    ('assignments', 'assignments_expiry', '1000000 10000 10 10 1'),
    ('service_account_roles', 'service_account_roles_expiry', '1000000 10000 10 10 1');
analyze sqlite_schema; -- reads them
insert into compatibility (migration, oldest) values (6, 4);
