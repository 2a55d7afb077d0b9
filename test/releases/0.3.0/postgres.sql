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
alter table "users" add column "roles" text;
alter table "users" add column "user_metadata" text;
alter table "users" add column "app_metadata" text;
create table "user_roles" ("role" text collate "C" not null, "user_created_at" bigint not null, "user_id" text collate "C" not null, "user_key" bigint not null references "users" ("key") on delete cascade, constraint "user_roles_pkey" primary key ("role", "user_created_at", "user_id"));
create unique index "user_roles_by_user_key" on "user_roles" ("user_key", "role");
CREATE FUNCTION store_user_roles() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'UPDATE' THEN DELETE FROM user_roles WHERE user_key = NEW.key; END IF;
      INSERT INTO user_roles (role, user_created_at, user_id, user_key)
      SELECT role, NEW.created_at, NEW.id, NEW.key FROM json_array_elements_text(NEW.roles::json) AS role;
      RETURN NULL;
    END $$;
CREATE TRIGGER user_roles_of_new_user AFTER INSERT ON users
    FOR EACH ROW WHEN (NEW.roles IS NOT NULL) EXECUTE FUNCTION store_user_roles();
CREATE TRIGGER user_roles_of_changed_user AFTER UPDATE OF roles, created_at ON users
    FOR EACH ROW WHEN (NEW.roles IS DISTINCT FROM OLD.roles OR NEW.created_at <> OLD.created_at)
    EXECUTE FUNCTION store_user_roles();
alter table "events" alter column "user_id" drop not null;
create index "sessions_by_impersonated_by" on "sessions" ("impersonated_by") where "impersonated_by" is not null;
alter table "sessions" add column "authenticated_at" bigint;
alter table "users" add column "factors" text collate "C";
alter table "sessions" add column "network" text;
create table "known_networks" ("digest" text collate "C" not null primary key, "user_key" bigint not null references "users" ("key") on delete cascade, "signed_in_at" bigint not null);
create index "known_networks_by_user_key" on "known_networks" ("user_key", "signed_in_at");
create index "known_networks_by_signed_in_at" on "known_networks" ("signed_in_at");
CREATE FUNCTION note_known_network() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (
  SELECT 1 FROM known_networks WHERE digest = NEW.network AND signed_in_at > NEW.created_at - 86400000
) THEN RETURN NULL; END IF;
      INSERT INTO known_networks (digest, user_key, signed_in_at)
  VALUES (NEW.network, NEW.user_key, NEW.created_at)
  ON CONFLICT (digest) DO UPDATE SET signed_in_at = excluded.signed_in_at;
      DELETE FROM known_networks WHERE digest IN (
  SELECT digest FROM known_networks WHERE user_key = NEW.user_key ORDER BY signed_in_at DESC, digest OFFSET 10
);
      RETURN NULL;
    END $$;
CREATE TRIGGER known_networks_of_sessions AFTER INSERT ON sessions
    FOR EACH ROW WHEN (NEW.network IS NOT NULL) EXECUTE FUNCTION note_known_network();
alter table "users" alter column "password_hash" drop not null;
alter table "sessions" add column "method" text;
alter table "sessions" add column "amr" text;
alter table "users" add column "locale" text;
create table if not exists "feature_migrations" ("feature" text collate "C", "name" text collate "C", "checksum" text not null, "ran_at" bigint not null, constraint "feature_migrations_key" primary key ("feature", "name"));
create table "api_keys" ("id" text collate "C" primary key, "user_key" bigint not null references "users" ("key") on delete cascade, "digest" text collate "C" not null unique, "name" text not null, "prefix" text not null, "scopes" text not null, "created_at" bigint not null, "expires_at" bigint, "last_used_at" bigint not null);
create index "api_keys_by_user_key" on "api_keys" ("user_key", "id");
create index "api_keys_by_expires_at" on "api_keys" ("expires_at");
create table "admin_keys" ("id" text collate "C" primary key, "digest" text collate "C" not null unique, "name" text not null, "prefix" text not null, "scopes" text not null, "created_at" bigint not null, "expires_at" bigint, "last_used_at" bigint not null, "created_by" text);
create index "admin_keys_by_expires_at" on "admin_keys" ("expires_at");
create table "totp" ("id" text collate "C" primary key, "user_key" bigint not null unique references "users" ("key") on delete cascade, "secret" text collate "C" not null, "confirmed_at" bigint, "expires_at" bigint, "last_step" bigint not null, "updated_at" bigint not null);
create index "totp_by_expires_at" on "totp" ("expires_at");
create table "recovery_codes" ("id" text collate "C" primary key, "user_key" bigint not null references "users" ("key") on delete cascade, "digest" text collate "C" not null);
create index "recovery_codes_by_user_key" on "recovery_codes" ("user_key", "digest");
create table "passkeys" ("id" text collate "C" primary key, "user_key" bigint not null references "users" ("key") on delete cascade, "credential_id" text collate "C" not null unique, "public_key" text collate "C" not null, "counter" bigint not null, "name" text, "transports" text not null, "backed_up" integer not null, "created_at" bigint not null, "last_used_at" bigint not null);
create index "passkeys_by_user_key" on "passkeys" ("user_key", "id");
create table "passkey_challenges" ("id" text collate "C" primary key, "session_id" text collate "C", "expires_at" bigint not null);
create index "passkey_challenges_by_expires_at" on "passkey_challenges" ("expires_at");
create table "email_codes" ("id" text collate "C" primary key, "user_key" bigint not null unique references "users" ("key") on delete cascade, "email" text collate "C" not null, "code" text collate "C" not null, "attempts" integer not null, "expires_at" bigint not null, "updated_at" bigint not null);
create index "email_codes_by_expires_at" on "email_codes" ("expires_at");
create table "email_code_attempts" ("id" text collate "C" primary key, "attempts" bigint not null);
create table "identities" ("id" text collate "C" primary key, "user_key" bigint not null references "users" ("key") on delete cascade, "issuer" text collate "C" not null, "subject" text collate "C" not null, "provider" text collate "C" not null, "email" text collate "C", "linked_at" bigint not null, "last_used_at" bigint not null);
create unique index "identities_by_subject" on "identities" ("subject", "issuer");
create index "identities_by_user_key" on "identities" ("user_key", "id");
create table "identity_flows" ("id" text collate "C" primary key, "state" text collate "C" not null, "provider" text collate "C" not null, "issuer" text collate "C" not null, "data" text collate "C" not null, "session_id" text collate "C", "needs_code" integer not null, "verified" integer not null, "expires_at" bigint not null);
create index "identity_flows_by_expires_at" on "identity_flows" ("expires_at");
create table "pending_sign_ups" ("digest" text collate "C" primary key, "email" text collate "C" not null, "password_hash" text collate "C" not null, "first_name" text collate "C", "last_name" text collate "C", "created_at" bigint not null, "expires_at" bigint not null);
create index "pending_sign_ups_by_email" on "pending_sign_ups" ("email", "created_at");
create index "pending_sign_ups_by_expires_at" on "pending_sign_ups" ("expires_at");
alter table "pending_sign_ups" add column "fields" text collate "C";
create table "job_leases" ("name" text collate "C" primary key, "fence" bigint not null, "expires_at" bigint not null, "due_at" bigint not null, "failures" bigint not null);
create table "consumers" ("name" text collate "C" primary key, "position_kind" text collate "C" not null, "position" bigint not null, "event_id" text collate "C" not null, "revision" bigint not null, "failures" bigint not null, "failed_position" bigint not null, "failed_event_id" text collate "C" not null, "error" text collate "C" not null, "updated_at" bigint not null);
create table "webhooks" ("id" text collate "C" primary key, "url" text collate "C" not null, "description" text collate "C", "types" text collate "C", "target" text collate "C" not null, "is_paused" integer not null, "disabled_reason" text collate "C", "position_kind" text collate "C" not null, "position" bigint not null, "event_id" text collate "C" not null, "failures" integer not null, "failed_event_id" text collate "C", "retry_at" bigint not null, "ping_id" text collate "C" not null, "fence" bigint not null, "lease_expires_at" bigint not null, "created_at" bigint not null, "updated_at" bigint not null);
create table "webhook_attempts" ("id" text collate "C" primary key, "webhook_id" text collate "C" not null, "event_id" text collate "C" not null, "type" text collate "C" not null, "attempt" integer not null, "at" bigint not null, "duration" integer not null, "status" integer not null, "outcome" text collate "C" not null);
create index "webhook_attempts_by_webhook" on "webhook_attempts" ("webhook_id", "id");
create table if not exists "migrated_features" ("feature" text collate "C" primary key, "fingerprint" text not null);
INSERT INTO "users" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"users",  E'[{"key":1,"id":"01a2151f-b494-7324-86be-551a55151148","email":"ann@example.com","password_hash":"$argon2id$v=19$m=19456,t=2,p=1$i+mo/sRsRg7ShhkmQuB7bw$KCzqfYB5yxZY635XhNPWJ8ueS1neXPkGNx0S3mPiNCA","first_name":"Ann","last_name":"Ångström","first_name_key":"ann","last_name_key":"ångström","email_verified":1,"disabled":0,"created_at":1795305600000,"updated_at":1795305600000,"version":2,"roles":null,"user_metadata":null,"app_metadata":null,"factors":null,"locale":null}, 
 {"key":2,"id":"01a2151f-b54a-7324-86be-69334be2b735","email":"ben@example.com","password_hash":"$argon2id$v=19$m=19456,t=2,p=1$hJsiMIsH4QDzFd/rOQPlrw$ZWr8uRw4gWfYFa+g5uLTIBMm9/OJaeAmn2akQztIrEs","first_name":"Ben","last_name":null,"first_name_key":"ben","last_name_key":"","email_verified":0,"disabled":1,"created_at":1795305601000,"updated_at":1795305601000,"version":2,"roles":null,"user_metadata":null,"app_metadata":null,"factors":null,"locale":null}, 
 {"key":3,"id":"01900000-0000-7000-8000-000000000001","email":"cat@example.com","password_hash":"$2b$10$c3KKPmKviThSCN3FMENrVuGmJkRitdRR9eCgzD/HvRuBUoqerY2Xi","first_name":null,"last_name":null,"first_name_key":"","last_name_key":"","email_verified":0,"disabled":0,"created_at":1717977600000,"updated_at":1717977600000,"version":1,"roles":null,"user_metadata":null,"app_metadata":null,"factors":null,"locale":null}, 
 {"key":4,"id":"01a2151f-b638-7324-86be-ab3a2d49d9bd","email":"fay@example.com","password_hash":"$argon2id$v=19$m=19456,t=2,p=1$q5QtF1aS8TDkcyqFJldTdg$l6V8XBhlVaKpAEAe7KSr6IzCh1NmOgYYkcNisOtEDJ8","first_name":null,"last_name":null,"first_name_key":"","last_name_key":"","email_verified":0,"disabled":0,"created_at":1795305603000,"updated_at":1795305603000,"version":2,"roles":null,"user_metadata":null,"app_metadata":null,"factors":"[\\"totp\\"]","locale":null}]');
INSERT INTO "admin_keys" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"admin_keys", '[]');
INSERT INTO "api_keys" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"api_keys",  E'[{"id":"01a2008d-7fb8-7324-86be-b85ec6e21a68","user_key":4,"digest":"8e52462dbb9ef337cdd108350a828d183c9fcb58d660dc42c2c5d7a2f0d305b9","name":"a script","prefix":"gate_pat_pgRw","scopes":"[\\"account:read\\",\\"account:write\\",\\"users:read\\"]","created_at":1795305603000,"expires_at":null,"last_used_at":0}]');
INSERT INTO "consumers" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"consumers", '[]');
INSERT INTO "email_code_attempts" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"email_code_attempts", '[]');
INSERT INTO "email_codes" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"email_codes", '[]');
INSERT INTO "email_tokens" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"email_tokens", '[{"digest":"01a2008d7fb8yycoZXtlS7FNEi8MoMKWTBf1R6knQ9q_0Suyuuf_1UQ","purpose":"passwordReset","user_key":1,"email":"ann@example.com","created_at":1795305603000,"expires_at":1795309203000}, 
 {"digest":"01a2008d7fb8Sf0VE7oeZBddNKrVSCD7_o5kZ5ona8FBlZMUHwih2e0","purpose":"emailChange","user_key":1,"email":"ann.new@example.com","created_at":1795305603000,"expires_at":1795392003000}, 
 {"digest":"01a2008d7fb8JG2UI6qXWahY5a44jNpijRXRmHWeUHxoGQIjpZQOEtM","purpose":"verification","user_key":4,"email":"fay@example.com","created_at":1795305603000,"expires_at":1795392003000}]');
INSERT INTO "events" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"events",  E'[{"id":"01a2008d-7400-7324-86be-5c157d2eae76","at":1795305600000,"type":"user.signed-up","actor_type":"user","actor_id":"01a2151f-b494-7324-86be-551a55151148","user_id":"01a2151f-b494-7324-86be-551a55151148","ip":"127.0.0.1","details":null,"position":759}, 
 {"id":"01a2008d-7400-7324-86be-6525b105d645","at":1795305600000,"type":"email.verified","actor_type":"user","actor_id":"01a2151f-b494-7324-86be-551a55151148","user_id":"01a2151f-b494-7324-86be-551a55151148","ip":"127.0.0.1","details":null,"position":760}, 
 {"id":"01a2008d-77e8-7324-86be-70f38c52bec4","at":1795305601000,"type":"user.signed-up","actor_type":"user","actor_id":"01a2151f-b54a-7324-86be-69334be2b735","user_id":"01a2151f-b54a-7324-86be-69334be2b735","ip":"127.0.0.1","details":null,"position":761}, 
 {"id":"01a2008d-77e8-7324-86be-7baaf1be26f8","at":1795305601000,"type":"user.disabled","actor_type":"adminKey","actor_id":"66fb6c8f","user_id":"01a2151f-b54a-7324-86be-69334be2b735","ip":"127.0.0.1","details":"{\\"fields\\":[\\"disabled\\"]}","position":762}, 
 {"id":"01a2008d-7bd0-7324-86be-7c2833c0ba3d","at":1795305602000,"type":"user.created","actor_type":"adminKey","actor_id":"66fb6c8f","user_id":"01900000-0000-7000-8000-000000000001","ip":"127.0.0.1","details":null,"position":763}, 
 {"id":"01a2008d-7fb8-7324-86be-8416f1bff0b8","at":1795305603000,"type":"user.signed-in","actor_type":"user","actor_id":"01a2151f-b494-7324-86be-551a55151148","user_id":"01a2151f-b494-7324-86be-551a55151148","ip":"127.0.0.1","details":"{\\"session\\":\\"01a2151f-b5b2-7324-86be-8247a582102a\\",\\"method\\":\\"password\\"}","position":764}, 
 {"id":"01a2008d-7fb8-7324-86be-888e099029bb","at":1795305603000,"type":"session.ended","actor_type":"user","actor_id":"01a2151f-b494-7324-86be-551a55151148","user_id":"01a2151f-b494-7324-86be-551a55151148","ip":"127.0.0.1","details":"{\\"session\\":\\"01a2151f-b5b2-7324-86be-8247a582102a\\"}","position":765}, 
 {"id":"01a2008d-7fb8-7324-86be-8e4afd69a648","at":1795305603000,"type":"password.reset-requested","actor_type":"anonymous","actor_id":null,"user_id":"01a2151f-b494-7324-86be-551a55151148","ip":"127.0.0.1","details":null,"position":766}, 
 {"id":"01a2008d-7fb8-7324-86be-97b8df47e469","at":1795305603000,"type":"email.change-requested","actor_type":"user","actor_id":"01a2151f-b494-7324-86be-551a55151148","user_id":"01a2151f-b494-7324-86be-551a55151148","ip":"127.0.0.1","details":null,"position":767}, 
 {"id":"01a2008d-7fb8-7324-86be-a64825e99c9b","at":1795305603000,"type":"user.impersonated","actor_type":"adminKey","actor_id":"66fb6c8f","user_id":"01a2151f-b494-7324-86be-551a55151148","ip":"127.0.0.1","details":"{\\"session\\":\\"01a2151f-b615-7324-86be-a30ef2a75843\\"}","position":768}, 
 {"id":"01a2008d-7fb8-7324-86be-b3d53fc3a6b5","at":1795305603000,"type":"user.signed-up","actor_type":"user","actor_id":"01a2151f-b638-7324-86be-ab3a2d49d9bd","user_id":"01a2151f-b638-7324-86be-ab3a2d49d9bd","ip":"127.0.0.1","details":null,"position":769}, 
 {"id":"01a2008d-7fb8-7324-86be-bf1c639ca11e","at":1795305603000,"type":"api-key.created","actor_type":"user","actor_id":"01a2151f-b638-7324-86be-ab3a2d49d9bd","user_id":"01a2151f-b638-7324-86be-ab3a2d49d9bd","ip":"127.0.0.1","details":"{\\"apiKey\\":\\"01a2008d-7fb8-7324-86be-b85ec6e21a68\\"}","position":770}, 
 {"id":"01a2008d-7fb8-7324-86be-cbb19310076a","at":1795305603000,"type":"totp.added","actor_type":"user","actor_id":"01a2151f-b638-7324-86be-ab3a2d49d9bd","user_id":"01a2151f-b638-7324-86be-ab3a2d49d9bd","ip":"127.0.0.1","details":null,"position":772}, 
 {"id":"01a2008d-7fb8-7324-86bf-0289f26b6c9d","at":1795305603000,"type":"user.signed-up","actor_type":"user","actor_id":"01a2151f-b686-7324-86be-fb2ed6ed0585","user_id":"01a2151f-b686-7324-86be-fb2ed6ed0585","ip":null,"details":null,"position":773}, 
 {"id":"01a2008d-7fb8-7324-86bf-093a3523ed0e","at":1795305603000,"type":"user.deleted","actor_type":"user","actor_id":"01a2151f-b686-7324-86be-fb2ed6ed0585","user_id":"01a2151f-b686-7324-86be-fb2ed6ed0585","ip":null,"details":null,"position":774}]');
INSERT INTO "feature_migrations" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"feature_migrations", '[{"feature":"api-keys","name":"0001_api_keys","checksum":"459cd1723b64b04c269f0f4d166298dcd91b2984ce4788b6d64c937442e628e4","ran_at":1795650728701}, 
 {"feature":"admin-keys","name":"0001_admin_keys","checksum":"9e0dda18a53376981b08f335ab22757d4c53ded4c71fb881d0910f2ebfa239fb","ran_at":1795650728706}, 
 {"feature":"admin-keys","name":"0002_users_identity","checksum":"673275f4b3ebc454d6c1f619e0f417e7ccceeb0c26298248c3f217d4c1bb2195","ran_at":1795650728708}, 
 {"feature":"totp","name":"0001_totp","checksum":"2182c28107ef2421a145c3c2352c612f5588150facb27909e6e9148a557eb86f","ran_at":1795650728714}, 
 {"feature":"passkeys","name":"0001_passkeys","checksum":"5d3dccc870cf4c3db7610550d207053986998a3ca5804c161d8ea4e44ad40eac","ran_at":1795650728719}, 
 {"feature":"email-codes","name":"0001_email_codes","checksum":"65951d5e0a9c9d9597559c54126ab22857e6ca8ba19f5f0997bccdbad9ff08e1","ran_at":1795650728724}, 
 {"feature":"identities","name":"0001_identities","checksum":"d3f3cbf6e924682ff803154a59fd9a9d34ca1bce140bf296e037898c368fcbff","ran_at":1795650728733}, 
 {"feature":"pending-sign-ups","name":"0001_pending_sign_ups","checksum":"72794c697e63c1c5a548d7a718ed5bf47c5bf8d0bbede6355d66518cc4565adc","ran_at":1795650728737}, 
 {"feature":"pending-sign-ups","name":"0002_fields","checksum":"5ac9cebe917bfdd0178173a8e89f688ef6fead35347d3e4beca99b6c89995147","ran_at":1795650728738}, 
 {"feature":"jobs","name":"0001_job_leases","checksum":"f974200998a4e6e7b7db3461b29adafdc04c320269115dc980783fa57212158d","ran_at":1795650728741}, 
 {"feature":"consumers","name":"0001_consumers","checksum":"7c06e01b326637daa454f3a449ba5502aae062b878273afbb544b73e8d18d693","ran_at":1795650728744}, 
 {"feature":"webhooks","name":"0001_webhooks","checksum":"0623a5feb6263a0baef2afeb9c9be29e4d99e5ed09953d646a08b0a12084be10","ran_at":1795650728751}]');
INSERT INTO "identities" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"identities", '[]');
INSERT INTO "identity_flows" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"identity_flows", '[]');
INSERT INTO "job_leases" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"job_leases", '[]');
INSERT INTO "known_networks" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"known_networks", '[{"digest":"bHu9XR6B3sj26v_rUVHcuF","user_key":1,"signed_in_at":1795305600000}, 
 {"digest":"wRjqYRHsj22nKGApIfIJ7G","user_key":2,"signed_in_at":1795305601000}, 
 {"digest":"BbL417Tz7h9lpAy049S7xd","user_key":4,"signed_in_at":1795305603000}]');
INSERT INTO "kysely_migration" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"kysely_migration", '[{"name":"0001_accounts","timestamp":"2026-11-25T23:52:08.616Z"}, 
 {"name":"0002_account_life","timestamp":"2026-11-25T23:52:08.638Z"}, 
 {"name":"0003_event_positions","timestamp":"2026-11-25T23:52:08.643Z"}, 
 {"name":"0004_email_tokens","timestamp":"2026-11-25T23:52:08.645Z"}, 
 {"name":"0005_user_record","timestamp":"2026-11-25T23:52:08.658Z"}, 
 {"name":"0006_admin_keys","timestamp":"2026-11-25T23:52:08.661Z"}, 
 {"name":"0007_reauthentication","timestamp":"2026-11-25T23:52:08.662Z"}, 
 {"name":"0008_factors","timestamp":"2026-11-25T23:52:08.663Z"}, 
 {"name":"0009_known_networks","timestamp":"2026-11-25T23:52:08.670Z"}, 
 {"name":"0010_notice_tokens","timestamp":"2026-11-25T23:52:08.671Z"}, 
 {"name":"0011_sign_in_methods","timestamp":"2026-11-25T23:52:08.676Z"}, 
 {"name":"0012_locale","timestamp":"2026-11-25T23:52:08.677Z"}]');
INSERT INTO "kysely_migration_lock" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"kysely_migration_lock", '[{"id":"migration_lock","is_locked":0}]');
INSERT INTO "last_requests" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"last_requests", '[{"user_key":3,"at":1719835200000}, 
 {"user_key":1,"at":1795305723000}, 
 {"user_key":4,"at":1795305603000}]');
INSERT INTO "migrated_features" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"migrated_features", '[{"feature":"api-keys","fingerprint":"80c30ec3abc98b2c279229ac7002db9dea6ee7c321a28096c17b3d3274a6747f"}, 
 {"feature":"admin-keys","fingerprint":"00d0772c83dc728bade10647236beb6f7017f0e73f955fa7fc0a89a2a5634886"}, 
 {"feature":"totp","fingerprint":"5fe2d37b3cb73a3ebbd03e99436f1540e54ea0ba20eaac07ea4074a5b0a9b3dd"}, 
 {"feature":"passkeys","fingerprint":"b328d2014b3cdc39660eaa7ac4b71a3c2a265c45af3398292c5aef9832f250ed"}, 
 {"feature":"email-codes","fingerprint":"7eff8eb187eb69f007d1d73e13bd79b984ab4b443dbb1dd04858225015bc1474"}, 
 {"feature":"identities","fingerprint":"737cd25cbde9ea9a4e52c2fbf371d5d89f8e0f419a806299e35913a2017b23b9"}, 
 {"feature":"pending-sign-ups","fingerprint":"458b83e1753f98b9243ec08b7a8203a62b08102a19d9874d8999a666c435d57f"}, 
 {"feature":"jobs","fingerprint":"195b0ef7bb84fd08331e96c01905271004fc92b6c625493f4b84b0e3aabf23d6"}, 
 {"feature":"consumers","fingerprint":"30a831dacc00b9968310b0e044a3cc1181e9751b385c950fbdb0852d828615c9"}, 
 {"feature":"webhooks","fingerprint":"822781769a27016b3a27cabba9e84dd925c33c4429ad6f6b2603c28199536a5d"}]');
INSERT INTO "passkey_challenges" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"passkey_challenges", '[]');
INSERT INTO "passkeys" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"passkeys", '[]');
INSERT INTO "pending_sign_ups" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"pending_sign_ups", '[]');
INSERT INTO "rate_limits" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"rate_limits", '[]');
INSERT INTO "recovery_codes" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"recovery_codes", '[{"id":"01a2151f-b65d-7324-86be-cfc26c98b7da","user_key":4,"digest":"a1vXWupNAtzrZ6kjrr7lq7JkESUvPV0amW7gOBI6hl8"}, 
 {"id":"01a2151f-b65d-7324-86be-d08e14a67101","user_key":4,"digest":"Gc4gBGkV6QE9KWs4Ppp4bXjdB4o5x2f9GSZk6Z3V4Mc"}, 
 {"id":"01a2151f-b65d-7324-86be-d7eb8daf1a02","user_key":4,"digest":"Qru2tcnMGAzFoGiA9RoRtQk27JN9A3BJWUS_AG-Rzlw"}, 
 {"id":"01a2151f-b65d-7324-86be-d92dd46a66ec","user_key":4,"digest":"UlqDhVMN2oA77dXGJXkfEDH9JtRdUXUbCDCseZFx4B4"}, 
 {"id":"01a2151f-b65d-7324-86be-dd3ad5e2e8ab","user_key":4,"digest":"zKVp6XvqvKWiEHyxaMn_8kEOzqiId3ux08Efk0RmaLk"}, 
 {"id":"01a2151f-b65d-7324-86be-e1edb2ba6e2d","user_key":4,"digest":"ppcQLg3GaeycY8ktT_7DvNzjtGsU0w3Oc8rmk2Mdh98"}, 
 {"id":"01a2151f-b65d-7324-86be-e5bc080fa72a","user_key":4,"digest":"qKmiEiyprQI_7gxuKo7Gz-NF-COvzLlJ6tPFyCFCPno"}, 
 {"id":"01a2151f-b65d-7324-86be-e85fd372960f","user_key":4,"digest":"jLi409V0jlcLTwaChld-hztLvzzdQ1bgYODPKwITLxU"}, 
 {"id":"01a2151f-b65d-7324-86be-eed3ad9ca136","user_key":4,"digest":"rxPq-zn09OrREEk3rZ2msKj4J5cEyh1xeo9-DaWMA9Y"}, 
 {"id":"01a2151f-b65e-7324-86be-f05e9a8d9689","user_key":4,"digest":"v-Y80RAn_7FXCgU8kRLBDSas6ZlHMeSu3SphaBABM-w"}]');
INSERT INTO "sessions" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"sessions", '[{"id":"01a2151f-b615-7324-86be-a30ef2a75843","user_key":1,"created_at":1795305603000,"expires_at":1795309203000,"last_request_at":1795305603000,"ip":"127.0.0.1","user_agent":"lightMyRequest","impersonated_by":"66fb6c8f","authenticated_at":null,"network":null,"method":"impersonation","amr":null}, 
 {"id":"01a2151f-b638-7324-86be-ad57b62eaf79","user_key":4,"created_at":1795305603000,"expires_at":1797897603000,"last_request_at":1795305603000,"ip":"127.0.0.1","user_agent":"lightMyRequest","impersonated_by":null,"authenticated_at":null,"network":"BbL417Tz7h9lpAy049S7xd","method":"password","amr":"pwd"}, 
 {"id":"01a2151f-b494-7324-86be-589dafc52b41","user_key":1,"created_at":1795305600000,"expires_at":1797897600000,"last_request_at":1795305723000,"ip":"127.0.0.1","user_agent":"lightMyRequest","impersonated_by":null,"authenticated_at":null,"network":"bHu9XR6B3sj26v_rUVHcuF","method":"password","amr":"pwd"}]');
INSERT INTO "totp" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"totp", '[{"id":"01a2008d-7fb8-7324-86be-c6377153dd0c","user_key":4,"secret":"v1.cbc67cc658deffaf.5vBR18bZfYV4psFvOA3HjEIrlO4QKBl7GAHQyTKIn7aKfTNaOHcYRtJZNe9llDuFZj5T5dgb1vpjAxhw","confirmed_at":1795305603000,"expires_at":null,"last_step":59843520,"updated_at":1795305603000}]');
INSERT INTO "user_roles" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"user_roles", '[]');
INSERT INTO "webhook_attempts" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"webhook_attempts", '[]');
INSERT INTO "webhooks" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"webhooks", '[]');
SELECT setval(pg_get_serial_sequence('users', 'key'), (SELECT max(key) FROM users));
