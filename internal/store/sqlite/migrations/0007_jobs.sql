-- +goose Up
-- Jobs change many users in the background. The queue belongs to no tenant, because a process
-- looks for the jobs of all tenants. An older program does not run jobs.
create table jobs (
    tenant_id    blob not null,
    id           blob not null,
    starter_id   blob, -- the user or program that started it
    content      text not null, -- JSON: the parts that do not change
    words        text not null, -- a JSON array: the words of the search; empty when the job has ended
    source       text not null, -- the address of the client; empty when the job has ended
    request_id   text not null,
    session_id   blob, -- the credential of the request; one of the three is set
    token_id     blob,
    operator_key blob,
    status       text not null, -- running, completed, canceled, stopped
    changed      integer not null, -- numbers of users
    unchanged    integer not null,
    refused      integer not null,
    problem      text not null, -- the code of the problem that stopped it
    last_id      blob, -- the last user that it visited; null: none
    ended_at     integer not null, -- 0: it is running
    primary key (tenant_id, id)
) strict, without rowid;
create index jobs_ended on jobs (tenant_id, ended_at);

-- The outcome of a job for a user.
create table job_results (
    tenant_id   blob not null,
    job_id      blob not null,
    user_id     blob not null,
    outcome     text not null, -- changed, unchanged, refused
    problem     text not null, -- the code of the problem, if it is refused
    recorded_at integer not null,
    primary key (tenant_id, job_id, user_id)
) strict, without rowid;
create index job_results_refused on job_results (tenant_id, job_id, user_id) where problem <> '';
create index job_results_recorded on job_results (tenant_id, recorded_at);

create table job_queue (
    id       blob not null primary key,
    tenant   blob not null,
    due_at   integer not null,
    attempts integer not null -- since the last progress
) strict, without rowid;
create index job_queue_due on job_queue (due_at);
create index job_queue_tenant on job_queue (tenant);
insert into compatibility (migration, oldest) values (7, 4);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('jobs', 'jobs', '1000000 10000 1'), ('jobs', 'jobs_ended', '1000000 10000 1'),
    ('job_results', 'job_results', '1000000 10000 10 1'), ('job_results', 'job_results_refused', '1000000 10000 10 1'),
    ('job_results', 'job_results_recorded', '1000000 10000 1');
analyze sqlite_schema; -- reads the figures
