-- +goose Up
-- Only PostgreSQL has policies.
insert into compatibility (migration, oldest) values (17, 4);
