-- +goose Up
-- After a transaction that has set rolecall.address, the setting is an empty text, and no longer null. A row
-- without an address would then be visible in all tenants.
alter policy address_search on users using (email_key = nullif(current_setting('rolecall.address', true), ''));
insert into compatibility (migration, oldest) values (17, 4);
