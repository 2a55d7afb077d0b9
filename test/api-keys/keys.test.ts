/** Create, list and revoke API keys (docs/design.md, "Machine callers"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { UNKNOWN_ID } from '../support/admin-routes.ts'
import {
  API_KEY_FORM,
  adminKeysOf,
  adminRevoke,
  checksum,
  createKey,
  listKeys,
  postKey,
  revokeKey,
  SCOPES,
} from '../support/api-keys.ts'
import { accountStatus, asAdmin, bearer, manualClock, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { isPrivateJson } from '../support/response-shapes.ts'
import { storedRows } from '../support/stored-rows.ts'

const LIMIT = 50

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const app = await build(t, { clock: clock.now, env: { DATABASE_URL }, hasher: quickHashing })
  const iso = (after = 0) => new Date(clock.now() + after).toISOString()

  t.test('a new key is shown once, with every scope and no end by default', async t => {
    const user = await signUp(app)
    const response = await postKey(app, user.token, { name: '  backups  ' })
    isPrivateJson(t, response, 201)
    t.equal(response.headers['set-cookie'], undefined)
    const { token, apiKey, ...others } = response.json()
    t.strictSame(others, {})
    t.match(token, API_KEY_FORM)
    t.equal(token.slice(-6), checksum(token.slice(0, -6)), 'the last six digits are the checksum')
    const { id, prefix, ...rest } = apiKey
    t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    t.ok(token.startsWith(prefix) && prefix.length > 'gate_pat_'.length && prefix.length <= 16, prefix)
    t.strictSame(rest, {
      name: 'backups',
      scopes: SCOPES,
      createdAt: iso(),
      expiresAt: null,
      lastUsedAt: null,
    })
    const listed = await call(app, 'GET', '/account/api-keys', undefined, bearer(user.token))
    isPrivateJson(t, listed, 200)
    t.strictSame(listed.json(), { results: [apiKey] })
    t.notMatch(await storedRows(DATABASE_URL), token.slice(9), 'the store has a digest of it')
    t.equal(await accountStatus(app, token), 200)
  })

  t.test('two keys differ, and are listed newest first', async t => {
    const user = await signUp(app)
    const first = await createKey(app, user.token, { name: 'first' })
    clock.advance(1_000)
    const second = await createKey(app, user.token, { name: 'second' })
    t.not(first.token, second.token)
    t.strictSame(
      (await listKeys(app, user.token)).map(({ name }) => name),
      ['second', 'first'],
    )
    t.strictSame(await listKeys(app, (await signUp(app)).token), [], 'nobody else sees them')
  })

  t.test('wrong fields are 400 under their names', async t => {
    const { token } = await signUp(app)
    const wrong: [payload: Record<string, unknown>, field: string][] = [
      [{ name: undefined }, 'name'],
      [{ name: '' }, 'name'],
      [{ name: '   ' }, 'name'],
      [{ name: 'a\nb' }, 'name'],
      [{ name: 'x'.repeat(129) }, 'name'],
      [{ name: 7 }, 'name'],
      [{ name: null }, 'name'],
      [{ scopes: 'account:read' }, 'scopes'],
      [{ scopes: [] }, 'scopes'],
      [{ scopes: null }, 'scopes'],
      [{ scopes: ['account:read', 'account:read'] }, 'scopes'],
      [{ scopes: ['account:delete'] }, 'scopes.0'],
      [{ scopes: ['account:read', 'Users:read'] }, 'scopes.1'],
      [{ expiresAt: iso(-1) }, 'expiresAt'],
      [{ expiresAt: iso() }, 'expiresAt'],
      [{ expiresAt: 'tomorrow' }, 'expiresAt'],
      [{ expiresAt: '2030-01-01' }, 'expiresAt'],
      [{ expiresAt: 1_800_000_000_000 }, 'expiresAt'],
      [{ lastUsedAt: null }, 'lastUsedAt'],
      [{ token: 'x' }, 'token'],
    ]
    for (const [payload, field] of wrong)
      errorsAt(t, await postKey(app, token, payload), 400, [field], JSON.stringify(payload))
    t.strictSame(await listKeys(app, token), [], 'none was created')
  })

  t.test('the scopes of a key are those that were asked for, in the order of the documents', async t => {
    const { token } = await signUp(app)
    const { apiKey } = await createKey(app, token, { scopes: ['users:read', 'account:read'] })
    t.strictSame([...apiKey.scopes].sort(), ['account:read', 'users:read'])
    t.strictSame((await listKeys(app, token))[0]?.scopes, apiKey.scopes)
  })

  t.test('a key is revoked by its id, once, and only by its own user', async t => {
    const [user, other] = [await signUp(app), await signUp(app)]
    const { token, apiKey } = await createKey(app, user.token)
    t.equal(await accountStatus(app, token), 200)
    const refused = await revokeKey(app, other.token, apiKey.id)
    t.equal(globalErrorOf(t, refused, 404), 'There is no such API key')
    globalErrorOf(t, await revokeKey(app, user.token, UNKNOWN_ID), 404)
    errorsAt(t, await revokeKey(app, user.token, 'x'), 400, ['id'])
    t.equal(await accountStatus(app, token), 200, 'so far it works')
    const revoked = await revokeKey(app, user.token, apiKey.id.toUpperCase())
    t.equal(revoked.statusCode, 204)
    t.equal(revoked.body, '')
    t.equal(await accountStatus(app, token), 401)
    t.strictSame(await listKeys(app, user.token), [])
    globalErrorOf(t, await revokeKey(app, user.token, apiKey.id), 404, 'twice')
    t.equal(await accountStatus(app, user.token), 200, 'sessions are unaffected')
  })

  t.test('an administrator sees and revokes the keys of a user', async t => {
    const [user, other] = [await signUp(app), await signUp(app)]
    const { token, apiKey } = await createKey(app, user.token)
    const listed = await adminKeysOf(app, user.id)
    isPrivateJson(t, listed, 200)
    t.strictSame(listed.json(), { results: [apiKey] })
    t.strictSame((await adminKeysOf(app, other.id)).json(), { results: [] })
    t.equal(globalErrorOf(t, await adminKeysOf(app, UNKNOWN_ID), 404), 'There is no such user')
    t.equal(
      globalErrorOf(t, await adminRevoke(app, other.id, apiKey.id), 404, "another user's key"),
      'There is no such API key',
    )
    t.equal(globalErrorOf(t, await adminRevoke(app, UNKNOWN_ID, apiKey.id), 404), 'There is no such user')
    globalErrorOf(t, await adminRevoke(app, user.id, UNKNOWN_ID), 404)
    errorsAt(t, await adminRevoke(app, user.id, 'x'), 400, ['keyId'])
    t.equal(await accountStatus(app, token), 200)
    t.equal((await adminRevoke(app, user.id, apiKey.id)).statusCode, 204)
    t.equal(await accountStatus(app, token), 401)
    globalErrorOf(t, await adminRevoke(app, user.id, apiKey.id), 404, 'twice')
    t.equal(
      (await app.inject({ method: 'POST', url: `/admin/users/${user.id}/api-keys`, headers: asAdmin }))
        .statusCode,
      405,
      'nobody creates keys for another user',
    )
  })

  /** On a busy machine the queue for a connection to PostgreSQL can take too long: such a 503 has created nothing. */
  const post = async (app: FastifyInstance, token: string): ReturnType<typeof postKey> => {
    const response = await postKey(app, token)
    return response.statusCode === 503 ? post(app, token) : response
  }
  const create = (app: FastifyInstance, token: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => post(app, token)))

  t.test('F8: of 80 simultaneous keys on two instances 50 are created', async t => {
    const instances = [app, await build(t, { clock: clock.now, env: { DATABASE_URL }, hasher: quickHashing })]
    const user = await signUp(app)
    const [bystander] = await create(app, (await signUp(app)).token, 1)
    t.equal(bystander?.statusCode, 201)
    const responses = (
      await Promise.all(instances.map(instance => create(instance, user.token, LIMIT - 10)))
    ).flat()
    const count = (status: number) => responses.filter(({ statusCode }) => statusCode === status).length
    t.equal(count(201), LIMIT)
    t.equal(count(409), responses.length - LIMIT)
    const keys = await listKeys(app, user.token)
    t.equal(keys.length, LIMIT)
    t.equal(globalErrorOf(t, await postKey(app, user.token), 409), 'You have 50 API keys: revoke one first')
    t.equal((await revokeKey(app, user.token, keys[7]?.id ?? '')).statusCode, 204)
    t.equal((await postKey(app, user.token)).statusCode, 201)
    t.equal((await postKey(app, user.token)).statusCode, 409)
  })
})
