-- +goose Up
-- A link names the credential that it was requested with, so that it ends with it. An
-- older program writes links without it; those stay valid when a credential is revoked.
insert into compatibility (migration, oldest) values (4, 2);

alter table invitations add column credential uuid; -- a session or an API token; null: neither
alter table invitations add column operator_key uuid; -- null: none
create index invitations_credential on invitations (tenant_id, credential) where credential is not null;

alter table one_time_tokens add column credential uuid; -- a session or an API token; null: neither
alter table one_time_tokens add column operator_key uuid; -- null: none
create index one_time_tokens_credential on one_time_tokens (tenant_id, credential) where credential is not null;
