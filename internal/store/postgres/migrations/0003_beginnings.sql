-- +goose Up
-- Bits of the beginnings of all words of the user. A search skips rows whose bits do not match.
-- -1 matches every search. An older program would not keep them up to date.
alter table user_words add column beginnings bigint not null default -1;
alter table user_words drop constraint user_words_pkey;
alter table user_words add primary key (tenant_id, word, user_id) include (beginnings);
insert into compatibility (migration, oldest) values (3, 3);
