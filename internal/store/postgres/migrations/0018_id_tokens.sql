-- +goose Up
-- The encrypted ID tokens with which sessions began, for the sign-out at the identity provider. An older program
-- inserts none.
create table id_tokens (
    tenant_id  uuid not null,
    session_id uuid not null,
    sealed     text not null,
    primary key (tenant_id, session_id)
);
insert into compatibility (migration, oldest) values (18, 4);

-- +goose StatementBegin
do $$
begin
    if exists (select from pg_extension where extname = 'citus') then
        if exists (select from pg_dist_partition where logicalrelid = 'users'::regclass) then
            perform create_distributed_table('id_tokens', 'tenant_id', colocate_with => 'users');
        end if;
    end if;
end
$$;
-- +goose StatementEnd

alter table id_tokens add constraint id_tokens_session
    foreign key (tenant_id, session_id) references sessions (tenant_id, id) on delete cascade;
alter table id_tokens enable row level security;
alter table id_tokens force row level security;
create policy tenant_isolation on id_tokens
    using (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
    with check (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid);
