-- +goose Up
-- Operators find the tenants of an email address. The second policy shows users of all tenants, but only
-- those with the address in the setting, and only to select.
create index users_address on users (email_key, tenant_id);
create policy address_search on users for select using (email_key = current_setting('rolecall.address', true));
insert into compatibility (migration, oldest) values (16, 4);
