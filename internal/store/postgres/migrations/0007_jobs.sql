-- +goose Up
-- Jobs change many users in the background. The queue belongs to no tenant, because a process
-- looks for the jobs of all tenants. An older program does not run jobs.
create table jobs (
    tenant_id    uuid not null,
    id           uuid not null,
    starter_id   uuid, -- the user or program that started it
    content      text not null, -- JSON: the parts that do not change
    words        text not null, -- a JSON array: the words of the search; empty when the job has ended
    source       text not null, -- the address of the client; empty when the job has ended
    request_id   text not null,
    session_id   uuid, -- the credential of the request; one of the three is set
    token_id     uuid,
    operator_key uuid,
    status       text collate "C" not null, -- running, completed, canceled, stopped
    changed      bigint not null, -- numbers of users
    unchanged    bigint not null,
    refused      bigint not null,
    problem      text collate "C" not null, -- the code of the problem that stopped it
    last_id      uuid, -- the last user that it visited; null: none
    ended_at     bigint not null, -- 0: it is running
    primary key (tenant_id, id)
);
create index jobs_ended on jobs (tenant_id, ended_at);

-- The outcome of a job for a user.
create table job_results (
    tenant_id   uuid not null,
    job_id      uuid not null,
    user_id     uuid not null,
    outcome     text collate "C" not null, -- changed, unchanged, refused
    problem     text collate "C" not null, -- the code of the problem, if it is refused
    recorded_at bigint not null,
    primary key (tenant_id, job_id, user_id)
);
create index job_results_refused on job_results (tenant_id, job_id, user_id) where problem <> '';
create index job_results_recorded on job_results (tenant_id, recorded_at);

create table job_queue (
    id       uuid not null primary key,
    tenant   uuid not null,
    due_at   bigint not null,
    attempts bigint not null -- since the last progress
);
create index job_queue_due on job_queue (due_at);
create index job_queue_tenant on job_queue (tenant);
insert into compatibility (migration, oldest) values (7, 4);

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['jobs', 'job_results']
    loop
        execute format('alter table %I enable row level security', tenant_table);
        execute format('alter table %I force row level security', tenant_table);
        execute format($policy$
            create policy tenant_isolation on %I
            using (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
            with check (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
            $policy$, tenant_table);
    end loop;
end
$$;
-- +goose StatementEnd
