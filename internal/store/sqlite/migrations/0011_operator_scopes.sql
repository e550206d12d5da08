-- +goose Up
-- What an operator key can be used for. In a key with scopes, limited_to has the tenants of the key,
-- and tenants is an empty list: older programs do not know scopes, and must not accept the key.
alter table operator_keys add column scopes text;     -- a JSON array; null: everything
alter table operator_keys add column limited_to text; -- a JSON array of names; null: all tenants
insert into compatibility (migration, oldest) values (11, 4);
