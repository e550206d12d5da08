-- +goose Up
-- The keys that the instance has used, so that a wrong key file is noticed. An older
-- program does not look.
create table instance_key_fingerprints (
    fingerprint blob not null primary key
) strict;
insert into compatibility (migration, oldest) values (5, 4);
