/** Filters of the audit log by user, actor and address, in the API and the console. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { newId } from '#base/ids'
import { AuditLog } from '#core/audit-log/audit-log'
import { type AuditEvent, OPERATOR } from '#core/audit-log/event'
import type { EventQuery } from '#core/audit-log/listing'
import { createKey } from '../support/admin-keys.ts'
import { ENCRYPTION_KEY } from '../support/authenticator-apps.ts'
import { asAdmin, signUp, updateUser } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { onEnginesOfRun } from '../support/engines.ts'

interface Page {
  readonly results: readonly { readonly id: string }[]
  readonly nextCursor: string | null
}

const ADDRESS = '2001:db8::17'

const eventsFor = async (app: FastifyInstance, query: Readonly<Record<string, string>>) =>
  app.inject({ url: `/admin/events?${new URLSearchParams(query)}`, headers: asAdmin })

const typesFor = async (app: FastifyInstance, query: Readonly<Record<string, string>>): Promise<string[]> =>
  (await eventsFor(app, query)).json().results.map(({ type }: { type: string }) => type)

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { env: { CONSOLE: 'on', TRUST_PROXY: 'loopback', ENCRYPTION_KEY } })
  const { id, email } = await signUp(app)
  const key = await createKey(app, ['users:read', 'users:write', 'events:read', 'keys:write'])
  const from = { ...key.headers, 'x-forwarded-for': ADDRESS }
  await app.inject({ method: 'PUT', url: `/admin/users/${id}`, headers: from, payload: { disabled: true } })
  await updateUser(app, id, { disabled: false })

  t.test('the API selects by actor and address', async t => {
    t.strictSame(await typesFor(app, { actorId: key.id }), ['user.disabled'])
    t.strictSame(await typesFor(app, { ip: ADDRESS }), ['user.disabled'])
    t.strictSame(await typesFor(app, { ip: '2001:DB8:0:0::0017' }), ['user.disabled'], 'in any spelling')
    t.strictSame(await typesFor(app, { ip: ADDRESS, userId: id, sort: 'at' }), ['user.disabled'])
    t.strictSame(await typesFor(app, { ip: ADDRESS, type: 'user.enabled' }), [])
    t.strictSame(await typesFor(app, { actorId: 'nobody' }), [])
    const { statusCode, body } = await eventsFor(app, { ip: '300.1.1.1' })
    t.equal(statusCode, 400)
    t.match(body, 'must be an IP address')
  })

  t.test('pages of what no index has', async t => {
    for (let each = 0; each < 5; each += 1)
      await app.inject({
        method: 'PUT',
        url: `/admin/users/${id}`,
        headers: from,
        payload: { firstName: `Ann ${each}` },
      })
    const found: string[] = []
    let cursor: string | null = null
    do {
      const page = await eventsFor(app, { ip: ADDRESS, limit: '2', ...(cursor !== null && { cursor }) })
      const { results, nextCursor } = page.json() as Page
      t.ok(results.length <= 2)
      found.push(...results.map(event => event.id))
      cursor = nextCursor
    } while (cursor !== null)
    t.equal(found.length, 6)
    t.equal(new Set(found).size, 6)
  })

  t.test('the console finds by e-mail, name and address', async t => {
    const client = await signedInTo(app, key.text)
    const finds = async (query: Readonly<Record<string, string>>, events: number): Promise<void> => {
      await client.open(`/console/events?${new URLSearchParams(query)}`)
      t.equal(client.status, 200)
      t.equal(client.page.match(/<details name="event">/g)?.length ?? 0, events, JSON.stringify(query))
    }
    await finds({ userId: email, type: 'user.disabled' }, 1)
    await finds({ userId: id, type: 'user.disabled' }, 1)
    await finds({ actorId: 'Of a Test', type: 'user.disabled' }, 1)
    await finds({ actorId: key.id, type: 'user.disabled' }, 1)
    await finds({ actorId: email, type: 'user.disabled' }, 0)
    await finds({ ip: ADDRESS, type: 'user.disabled' }, 1)
    t.match(client.page, 'of a test</bdi></strong></a>', 'the details lead to more of the key')
    t.match(client.page, `console/events?ip=${encodeURIComponent(ADDRESS)}`)
    for (const query of ['userId=nobody@example.com', 'actorId=no+such+key', 'ip=nowhere', 'userId=no-id']) {
      await client.open(`/console/events?${query}`)
      t.ok(client.status >= 400, query)
      t.match(client.page, 'class="notice bad"')
      t.match(client.page, 'role="search"', 'the filters stay')
    }
  })

  t.test('a key without the scopes of a look-up filters by ids', async t => {
    const limited = await createKey(app, ['events:read'])
    const client = await signedInTo(app, limited.text)
    await client.open(`/console/events?userId=${id}&type=user.disabled`)
    t.match(client.page, '<details name="event">')
    await client.open(`/console/events?userId=${email}`)
    t.equal(client.status, 400, 'it does not learn whether an account exists')
  })
})

t.test('a page compares a bounded number of events, and the next one goes on', async t => {
  const events: AuditEvent<null>[] = Array.from({ length: 20_500 }, (_, index) => ({
    id: newId(1_000_000 - index),
    at: 1_000_000 - index,
    type: 'user.created',
    actor: { ...OPERATOR, ip: index === 20_499 ? ADDRESS : null },
    userId: null,
    details: null,
  }))
  let read = 0
  const list = async ({ beforeId, limit }: EventQuery) => {
    const from = beforeId === null ? 0 : events.findIndex(({ id }) => id === beforeId) + 1
    const found = events.slice(from, from + limit)
    read += found.length
    return found
  }
  const log = new AuditLog({ list } as unknown as ConstructorParameters<typeof AuditLog>[0])
  const page = (cursor: string | undefined) =>
    log.list({ filter: { ip: ADDRESS }, limit: 20, cursor, sort: '-at' })
  const first = await page(undefined)
  t.strictSame(first.events, [])
  t.equal(read, 10_000)
  const second = await page(first.nextCursor ?? undefined)
  t.strictSame(second.events, [])
  const third = await page(second.nextCursor ?? undefined)
  t.strictSame(third.events, events.slice(-1))
  t.equal(third.nextCursor, null)
})
