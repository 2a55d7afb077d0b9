/** Pages as async iterators, on both engines (docs/design.md, "OpenAPI and client"). */
import t from 'tap'
import { createClient, isServiceError } from '../../client/client.ts'
import { freshEmail, signUp } from '../support/build.ts'
import { clientsOf, rejection } from '../support/clients.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'

/** Milliseconds until events that are not visible count as missing. */
const DEADLINE = 10_000

const namesOf = async (list: AsyncIterable<{ firstName: string | null }>): Promise<string[]> => {
  const names: string[] = []
  for await (const { firstName } of list) names.push(String(firstName))
  return names
}

const NAMES = ['Ann', 'Bea', 'Cy', 'Dee', 'Eve']

t.test('lists', t =>
  onEnginesOfRun(t, async (t, { build }) => {
    const app = await build(t)
    const urls: string[] = []
    app.server.on('request', ({ url }) => urls.push(String(url)))
    const { baseUrl, admin } = await clientsOf(app)
    const { token } = await signUp(app, { firstName: 'Zoe' })
    for (const firstName of NAMES) await admin.createUser({ email: freshEmail(), firstName })
    urls.length = 0

    t.test('every entry of three pages, one request for each', async t => {
      t.same(await namesOf(admin.listUsers({ limit: 2, sort: 'firstName' })), [...NAMES, 'Zoe'])
      t.equal(urls.splice(0).length, 3)
      const gatehouse = createClient({ baseUrl, accessToken: token })
      t.same(await namesOf(gatehouse.listProfiles({ limit: 4, sort: '-firstName' })), [
        'Zoe',
        ...NAMES.toReversed(),
      ])
      t.same(await namesOf(gatehouse.listProfiles({ search: 'be' })), ['Bea'])
      urls.length = 0
    })

    t.test('nothing is requested before it is read, nor after the reader stops', async t => {
      const list = admin.listUsers({ limit: 2, sort: 'firstName' })
      t.equal(urls.length, 0)
      for await (const { firstName } of list) if (firstName === 'Bea') break
      t.equal(urls.splice(0).length, 1)
    })

    t.test('one page with its properties and headers, and all pages', async t => {
      const query = { limit: 2, sort: 'firstName', count: true } as const
      const { data, response } = await admin.listUsers(query).page().withResponse()
      t.equal(data.total, 6)
      t.match(response.headers.get('link'), /rel="next"/)
      const next = await admin.listUsers({ ...query, cursor: String(data.nextCursor) }).page()
      t.same(
        next.results.map(({ firstName }) => firstName),
        ['Cy', 'Dee'],
      )
      const sizes: number[] = []
      for await (const { results } of admin.listUsers({ limit: 4 }).pages()) sizes.push(results.length)
      t.same(sizes, [4, 2])
    })

    t.test('the audit log is followed from a cursor, and ends where it is up to date', async t => {
      const read = async (start?: string) => {
        const types: string[] = []
        let cursor = start
        const query = { sort: 'at', limit: 3, ...(cursor !== undefined && { cursor }) } as const
        for await (const page of admin.listEvents(query).pages()) {
          types.push(...page.results.map(({ type }) => type))
          cursor = String(page.nextCursor)
        }
        return { types, cursor }
      }
      // On PostgreSQL an event waits for transactions that began before its own.
      const readAll = (count: number, start?: string) =>
        until(
          () => read(start),
          ({ types }) => types.length >= count,
          DEADLINE,
        )
      const first = await readAll(1 + NAMES.length)
      t.equal(first.types.length, 1 + NAMES.length)
      t.same((await read(first.cursor)).types, [])
      await admin.deleteUser((await signUp(app)).id)
      t.same((await readAll(2, first.cursor)).types, ['user.signed-up', 'user.deleted'])
    })

    t.test('an error of a page, and an aborted iteration', async t => {
      t.ok(isServiceError(await rejection(namesOf(admin.listUsers({ cursor: 'x' }))), 400))
      const controller = new AbortController()
      const reason = new Error('enough')
      const list = admin.listUsers({ limit: 2 }, { signal: controller.signal })
      const read = async () => {
        for await (const _ of list) controller.abort(reason)
      }
      t.equal(await rejection(read()), reason)
    })
  }),
)
