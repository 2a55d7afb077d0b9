create table if not exists "kysely_migration" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null);
create table if not exists "kysely_migration_lock" ("id" varchar(255) not null primary key, "is_locked" integer default 0 not null);
create table "users" ("key" bigint generated always as identity primary key, "id" text collate "C" not null unique, "email" text collate "C" not null, "password_hash" text collate "C" not null, "first_name" text collate "C", "last_name" text collate "C", "first_name_key" text collate "C" not null, "last_name_key" text collate "C" not null, "email_verified" integer not null, "disabled" integer not null, "created_at" bigint not null, "updated_at" bigint not null);
create unique index "users_by_email" on "users" ("email");
create index "users_by_created_at" on "users" ("created_at", "id");
create index "users_by_first_name_key" on "users" ("first_name_key", "id");
create index "users_by_last_name_key" on "users" ("last_name_key", "id");
create index "users_disabled" on "users" ("created_at", "id") where "disabled" = 1;
create table "sessions" ("id" text collate "C" primary key, "user_key" bigint not null references "users" ("key") on delete cascade, "created_at" bigint not null, "expires_at" bigint not null, "last_request_at" bigint not null, "ip" text, "user_agent" text) with (fillfactor = 90);
create index "sessions_by_user_key" on "sessions" ("user_key", "created_at", "id");
create table "last_requests" ("user_key" bigint primary key references "users" ("key") on delete cascade, "at" bigint not null) with (fillfactor = 50);
alter table "users" add column "version" integer default 1 not null;
alter table "sessions" add column "impersonated_by" text;
create table "events" ("id" text collate "C" primary key, "at" bigint not null, "type" text collate "C" not null, "actor_type" text not null, "actor_id" text, "user_id" text collate "C" not null, "ip" text, "details" text);
create index "events_by_user_id" on "events" ("user_id", "id");
create index "events_by_type" on "events" ("type", "id");
create table "mailed_tokens" ("digest" text collate "C" primary key, "purpose" text not null, "user_key" bigint not null references "users" ("key") on delete cascade, "email" text collate "C" not null, "created_at" bigint not null, "expires_at" bigint not null);
create index "mailed_tokens_by_user_key" on "mailed_tokens" ("user_key");
create unlogged table "rate_limits" ("key" varchar(255) primary key, "points" integer default 0 not null, "expire" bigint);
CREATE FUNCTION event_shift() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 0::bigint';
alter table "events" add column "position" bigint default 0 not null;
ALTER TABLE events ALTER COLUMN position
    SET DEFAULT (pg_current_xact_id()::text::bigint + event_shift());
create index "events_by_position" on "events" ("position", "id");
create index "events_by_user_id_position" on "events" ("user_id", "position", "id");
create index "events_by_type_position" on "events" ("type", "position", "id");
drop index "mailed_tokens_by_user_key";
alter table "mailed_tokens" rename to "email_tokens";
create index "email_tokens_by_user_key" on "email_tokens" ("user_key");
INSERT INTO "users" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"users", '[{"key":1,"id":"01a2014d-bd5d-729d-855f-97c081e6f20c","email":"ann@example.com","password_hash":"$argon2id$v=19$m=19456,t=2,p=1$gdpF9t2XRZV4t15Q+cxwZg$sdDDHAkuCpgBPhgTa+F8Jx7cGdxuBtyduvttu2yrhMs","first_name":"Ann","last_name":"Ångström","first_name_key":"ann","last_name_key":"ångström","email_verified":1,"disabled":0,"created_at":1795305600000,"updated_at":1795305600000,"version":2}, 
 {"key":2,"id":"01a2014d-be1b-729d-855f-a8aa1840d623","email":"ben@example.com","password_hash":"$argon2id$v=19$m=19456,t=2,p=1$PbEI2kM2hdae1Eyf1itEiw$tpiJwYKL7q6nCtqcYQ03sexZ/R6uFcNV+cH0NNs+Cf0","first_name":"Ben","last_name":null,"first_name_key":"ben","last_name_key":"","email_verified":0,"disabled":1,"created_at":1795305601000,"updated_at":1795305601000,"version":2}, 
 {"key":3,"id":"01900000-0000-7000-8000-000000000001","email":"cat@example.com","password_hash":"$2b$10$c3KKPmKviThSCN3FMENrVuGmJkRitdRR9eCgzD/HvRuBUoqerY2Xi","first_name":null,"last_name":null,"first_name_key":"","last_name_key":"","email_verified":0,"disabled":0,"created_at":1717977600000,"updated_at":1717977600000,"version":1}]');
INSERT INTO "email_tokens" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"email_tokens", '[{"digest":"01a2008d7fb84KdZP-XraHLyT11oOFTxKDLY2qIB5yTGwYJCzcFiWp4","purpose":"passwordReset","user_key":1,"email":"ann@example.com","created_at":1795305603000,"expires_at":1795309203000}, 
 {"digest":"01a2008d7fb8DNd40cs7AOtrMJCT6l8vblZyvQ9feRM4DtsjOLRMKrc","purpose":"emailChange","user_key":1,"email":"ann.new@example.com","created_at":1795305603000,"expires_at":1795392003000}]');
INSERT INTO "events" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"events",  E'[{"id":"01a2008d-7400-729d-855f-9d71ea6c9137","at":1795305600000,"type":"user.signed-up","actor_type":"user","actor_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","user_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","ip":"127.0.0.1","details":null,"position":760}, 
 {"id":"01a2008d-7400-729d-855f-a49a4f297a70","at":1795305600000,"type":"email.verified","actor_type":"user","actor_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","user_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","ip":"127.0.0.1","details":null,"position":761}, 
 {"id":"01a2008d-77e8-729d-855f-b20f2cd8e042","at":1795305601000,"type":"user.signed-up","actor_type":"user","actor_id":"01a2014d-be1b-729d-855f-a8aa1840d623","user_id":"01a2014d-be1b-729d-855f-a8aa1840d623","ip":"127.0.0.1","details":null,"position":763}, 
 {"id":"01a2008d-77e8-729d-855f-b9c02413cd6f","at":1795305601000,"type":"user.disabled","actor_type":"adminKey","actor_id":"66fb6c8f","user_id":"01a2014d-be1b-729d-855f-a8aa1840d623","ip":"127.0.0.1","details":"{\\"fields\\":[\\"disabled\\"]}","position":764}, 
 {"id":"01a2008d-7bd0-729d-855f-bd74bb573b54","at":1795305602000,"type":"user.created","actor_type":"adminKey","actor_id":"66fb6c8f","user_id":"01900000-0000-7000-8000-000000000001","ip":"127.0.0.1","details":null,"position":765}, 
 {"id":"01a2008d-7fb8-729d-855f-c59abb16458d","at":1795305603000,"type":"user.signed-in","actor_type":"user","actor_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","user_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","ip":"127.0.0.1","details":"{\\"session\\":\\"01a2014d-be41-729d-855f-c307ea7dc084\\"}","position":766}, 
 {"id":"01a2008d-7fb8-729d-855f-c902f15979b7","at":1795305603000,"type":"session.ended","actor_type":"user","actor_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","user_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","ip":"127.0.0.1","details":"{\\"session\\":\\"01a2014d-be41-729d-855f-c307ea7dc084\\"}","position":767}, 
 {"id":"01a2008d-7fb8-729d-855f-cedca68d33c3","at":1795305603000,"type":"password.reset-requested","actor_type":"anonymous","actor_id":null,"user_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","ip":"127.0.0.1","details":null,"position":769}, 
 {"id":"01a2008d-7fb8-729d-855f-d5dada627792","at":1795305603000,"type":"email.change-requested","actor_type":"user","actor_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","user_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","ip":"127.0.0.1","details":null,"position":770}, 
 {"id":"01a2008d-7fb8-729d-855f-e5fd4a3f0db1","at":1795305603000,"type":"user.impersonated","actor_type":"adminKey","actor_id":"66fb6c8f","user_id":"01a2014d-bd5d-729d-855f-97c081e6f20c","ip":"127.0.0.1","details":"{\\"session\\":\\"01a2014d-bfbc-729d-855f-e3ff9811d16c\\"}","position":771}, 
 {"id":"01a2008d-7fb8-729d-855f-f3572feb20c9","at":1795305603000,"type":"user.signed-up","actor_type":"user","actor_id":"01a2014d-bfce-729d-855f-eb1db7f09e24","user_id":"01a2014d-bfce-729d-855f-eb1db7f09e24","ip":null,"details":null,"position":772}, 
 {"id":"01a2008d-7fb8-729d-855f-f8f8e310070e","at":1795305603000,"type":"user.deleted","actor_type":"user","actor_id":"01a2014d-bfce-729d-855f-eb1db7f09e24","user_id":"01a2014d-bfce-729d-855f-eb1db7f09e24","ip":null,"details":null,"position":773}]');
INSERT INTO "kysely_migration" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"kysely_migration", '[{"name":"0001_accounts","timestamp":"2026-11-22T03:30:01.289Z"}, 
 {"name":"0002_account_life","timestamp":"2026-11-22T03:30:01.307Z"}, 
 {"name":"0003_event_positions","timestamp":"2026-11-22T03:30:01.313Z"}, 
 {"name":"0004_email_tokens","timestamp":"2026-11-22T03:30:01.317Z"}]');
INSERT INTO "kysely_migration_lock" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"kysely_migration_lock", '[{"id":"migration_lock","is_locked":0}]');
INSERT INTO "last_requests" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"last_requests", '[{"user_key":3,"at":1719835200000}, 
 {"user_key":1,"at":1795305723000}]');
INSERT INTO "rate_limits" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"rate_limits", '[{"key":"expired-rows:pass","points":1,"expire":1795318741550}]');
INSERT INTO "sessions" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"sessions", '[{"id":"01a2014d-bfbc-729d-855f-e3ff9811d16c","user_key":1,"created_at":1795305603000,"expires_at":1795309203000,"last_request_at":1795305603000,"ip":"127.0.0.1","user_agent":"lightMyRequest","impersonated_by":"66fb6c8f"}, 
 {"id":"01a2014d-bd5d-729d-855f-9b8fc6226aba","user_key":1,"created_at":1795305600000,"expires_at":1797897600000,"last_request_at":1795305723000,"ip":"127.0.0.1","user_agent":"lightMyRequest","impersonated_by":null}]');
SELECT setval(pg_get_serial_sequence('users', 'key'), (SELECT max(key) FROM users));
