-- +goose Up
-- Bits of the beginnings of all words of the user, which rule users out before they are
-- read. -1 rules nobody out. An older program would not keep them.
alter table user_words add column beginnings integer not null default -1;
insert into compatibility (migration, oldest) values (3, 3);
