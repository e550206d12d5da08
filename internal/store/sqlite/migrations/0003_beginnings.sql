-- +goose Up
-- Bits of the beginnings of all words of the user. A search skips rows whose bits do not match.
-- -1 matches every search. An older program would not keep them up to date.
alter table user_words add column beginnings integer not null default -1;
insert into compatibility (migration, oldest) values (3, 3);
