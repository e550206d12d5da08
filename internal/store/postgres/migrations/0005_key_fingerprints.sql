-- +goose Up
-- The keys that the instance has used, so that a wrong key file is noticed. An older
-- program does not look.
create table instance_key_fingerprints (
    fingerprint bytea not null primary key
);
insert into compatibility (migration, oldest) values (5, 4);
