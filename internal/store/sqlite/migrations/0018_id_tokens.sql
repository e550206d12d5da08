-- +goose Up
-- The encrypted ID tokens with which sessions began, for the sign-out at the identity provider. An older program
-- inserts none.
create table id_tokens (
    tenant_id  blob not null,
    session_id blob not null,
    sealed     text not null,
    primary key (tenant_id, session_id),
    constraint id_tokens_session foreign key (tenant_id, session_id) references sessions (tenant_id, id) on delete cascade
) strict, without rowid;
insert into compatibility (migration, oldest) values (18, 4);

insert into sqlite_stat1 (tbl, idx, stat) values ('id_tokens', 'id_tokens', '100000 10000 1');
analyze sqlite_schema; -- reads the figures
