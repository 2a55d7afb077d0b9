/** Estimates of users on PostgreSQL, whose statistics are behind the table (docs/design.md, "Contract"). */
import t from 'tap'
import { NOW } from './contract/fixtures.ts'
import { ask, open } from './postgres-support.ts'

const ANALYSED = 100
const USERS = 12_090

const insert = (from: number, to: number): string =>
  `INSERT INTO users (id, email, password_hash, first_name_key, last_name_key, email_verified, disabled,
     created_at, updated_at, app_metadata)
   SELECT gen_random_uuid()::text, 'user' || i || '@example.com', '', '', '', 0, (i % 2)::int, ${NOW} + i, ${NOW},
     CASE WHEN i < ${ANALYSED} THEN NULL ELSE '{"text":"' || repeat(md5(i::text), 40) || '"}' END
   FROM generate_series(${from}, ${to - 1}) i`

t.test('postgres: all users are no fewer than a part of them, before autovacuum', async t => {
  const storage = await open(t)
  await ask(t, insert(0, ANALYSED))
  await ask(t, 'ANALYZE users')
  await ask(t, 'ALTER TABLE users SET (autovacuum_enabled = false)')
  await ask(t, insert(ANALYSED, USERS))
  await ask(t, `INSERT INTO last_requests SELECT key, ${NOW} FROM users`)
  const all = await storage.users.estimate({})
  t.ok(Math.abs(all - USERS) < USERS / 20, `${all} of ${USERS}`)
  for (const filter of [{ disabled: true }, { disabled: false }, { lastRequestAfter: NOW - 1 }]) {
    const part = await storage.users.estimate(filter)
    t.ok(part <= all, `${JSON.stringify(filter)}: ${part} of ${all}`)
  }
})
