-- +goose Up
-- Tenants with due mail take turns, so that the mail of one does not delay that of others.
create index outbox_turn on outbox (tenant, due_at);
insert into compatibility (migration, oldest) values (21, 20);
