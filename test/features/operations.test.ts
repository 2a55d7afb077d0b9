/** Mistakes in the operations of features have the same outcome on both engines (docs/design.md, "Features"). */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { accountStatus, bearer, build as buildApp, logCapture, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { until } from '../support/until.ts'
import { attacks, finished } from './attacks.ts'

type Store = Record<string, (...args: readonly unknown[]) => Promise<unknown>>

const storeOf = (app: FastifyInstance): Store => (app.services as unknown as { attacks: Store }).attacks

let ids = 0
const newId = (): string => {
  ids += 1
  return `thing ${ids}`
}

await onEveryEngine(t, async (t, { name: engine, build, newDatabase }) => {
  const env = { DATABASE_URL: await newDatabase(t) }
  const log = logCapture()
  const app = await build(t, {
    env,
    features: [attacks],
    logStream: log.stream,
    extend: app => app.get('/mistake', async () => call('throws', newId(), user.id)),
  })
  const store = storeOf(app)
  const call = async (name: string, ...args: readonly unknown[]): Promise<unknown> => store[name]?.(...args)
  const user = await signUp(app)
  const count = () => call('count') as Promise<number>

  /** The operation fails with a message, and leaves nothing behind. */
  const fails = async (
    t: Test,
    message: RegExp,
    name: string,
    ...args: readonly unknown[]
  ): Promise<void> => {
    const before = await count()
    await t.rejects(call(name, ...args), { name: 'OperationError', code: 'OPERATION', message }, name)
    t.equal(await count(), before, `${name} leaves nothing`)
    t.equal(await call('yieldsNothing'), 'nothing', `after ${name} the store takes writes`)
  }

  t.test('an operation that throws is rolled back, and its request gets a 500', async t => {
    await fails(t, /^attacks\.throws failed: a bug$/, 'throws', newId(), user.id)
    globalErrorOf(t, await app.inject({ url: '/mistake' }), 500)
    const [record] = log.records().filter(({ level }) => level === 50)
    t.match(record, {
      msg: 'internal error',
      err: { message: 'attacks.throws failed: a bug', stack: /attacks\.ts/ },
    })
  })

  t.test('an operation that catches a unique violation may end, without its other writes', async t => {
    const taken = newId()
    await call('add', taken, user.id)
    const first = newId()
    t.equal(await call('endsWhenTaken', first, taken, user.id), 'taken')
    t.equal(await call('find', first), undefined, 'rolled back')
    t.equal(await call('endsWhenTaken', first, newId(), user.id), 'added')
    await fails(t, /^attacks\.add failed: .*unique/i, 'add', taken, user.id)
    await fails(
      t,
      /^attacks\.continuesWhenTaken must end after a statement that failed \(.*unique.*\), and cannot run another one$/i,
      'continuesWhenTaken',
      taken,
      newId(),
      user.id,
    )
  })

  t.test('finally blocks run; what they yield after a failure does not', async t => {
    const id = newId()
    await fails(
      t,
      /^attacks\.yieldsInFinally must end after a statement that failed/,
      'yieldsInFinally',
      id,
      user.id,
    )
    if (engine === 'postgres') t.strictSame(finished, [id])
    const after = newId()
    t.equal(await call('yieldsAfterFinally', after, user.id), 'added')
    t.ok(await call('find', `${after} again`))
  })

  t.test('what is no operation is named', async t => {
    await fails(
      t,
      /^attacks\.yieldsNoStatement must yield statements .* yield\* /,
      'yieldsNoStatement',
      newId(),
      user.id,
    )
    await fails(
      t,
      /^attacks\.returnsNoWrite must return invalidates\(…\)/,
      'returnsNoWrite',
      newId(),
      user.id,
    )
    for (const name of ['returnsNoGenerator', 'returnsAsyncGenerator'])
      await fails(t, new RegExp(`^attacks\\.${name} must be a generator: declare it with function\\*$`), name)
  })

  t.test('arguments and results are plain data', async t => {
    await fails(
      t,
      /^The arguments of attacks\.add must be plain data: .*could not be cloned/,
      'add',
      () => 1,
      user.id,
    )
    await fails(
      t,
      /^The result of attacks\.returnsFunction must be plain data/,
      'returnsFunction',
      newId(),
      user.id,
    )
    const argument = { at: new Date(0), big: 1n, bytes: Buffer.from('x'), list: [undefined], nan: Number.NaN }
    const result = (await call('returnsArgument', argument)) as typeof argument
    t.strictSame(result, { ...argument, bytes: new Uint8Array([120]) })
    t.not(result, argument, 'a copy')
  })

  t.test('values have the same outcome on both engines', async t => {
    const accepted: [unknown, unknown][] = [
      [1.5, 1.5],
      [2 ** 53 - 1, 2 ** 53 - 1],
      [12n, 12],
      [true, 1],
      [false, 0],
      [null, null],
      [undefined, null],
      [-0, 0],
    ]
    for (const [value, stored] of accepted) {
      const id = newId()
      t.equal(await call('add', id, user.id, value), 'added')
      t.match(await call('find', id), { number: stored }, String(value))
    }
    const bytes = newId()
    await call('add', bytes, user.id, null, new Uint8Array([0, 255]))
    t.match(await call('find', bytes), { content: Buffer.from([0, 255]) })
    const refused: [unknown, RegExp][] = [
      [new Date(), /is an object \(Date\)\. .*Store times as milliseconds, and objects as JSON$/],
      [Number.NaN, /is NaN/],
      [Number.POSITIVE_INFINITY, /is Infinity/],
      [2n ** 53n, /is a bigint that is not a safe integer/],
      [{ a: 1 }, /is an object \(Object\)/],
      [[new Date()], /is an object \(Array\)/],
      ['\0', /is a string with a null character/],
    ]
    for (const [value, message] of refused) {
      const expected = new RegExp(`^attacks\\.add: \\$3 ${message.source}`)
      await fails(t, expected, 'add', newId(), user.id, value)
    }
    await t.rejects(call('find', new Date()), { message: /^attacks\.find: \$1 is an object \(Date\)/ })
  })

  t.test('a wrong statement is no failure of the store', async t => {
    await fails(t, /^attacks\.runs failed: .*nothing_here/, 'runs', 'SELECT * FROM nothing_here')
    await fails(t, /^attacks\.runs failed: /, 'runs', 'SELECT CAST($1 AS text), CAST($2 AS text)', 'one')
    await fails(t, /^attacks\.runs failed: /, 'runs', 'INSERT INTO things (id) VALUES ($1)', newId())
    for (const text of ['COMMIT', ' rollback; SELECT 1', 'Savepoint x'])
      await fails(t, /^attacks\.runs must not control its transaction$/, 'runs', text)
    const message = /^attacks\.read failed: .*nothing_here/
    await t.rejects(call('read', 'SELECT * FROM nothing_here'), { name: 'OperationError', message })
    for (let text = 0; text < 600; text += 1)
      t.strictSame(await call('runs', `SELECT ${text} AS text`), [{ text }], 'more texts than are cached')
  })

  t.test('a name is no SQL, and very many rows are returned', async t => {
    t.equal(await call('"; DROP TABLE things; --', newId(), user.id), 'added')
    const found = (await call('returnsRows', 100_000)) as { n: number }[]
    t.equal(found.length, 100_000)
    t.strictSame(found.at(-1), { n: 100_000, x: 'x' })
  })

  t.test('what an operation invalidates is evicted here and on another instance', async t => {
    const other = await buildApp(t, { env, features: [attacks] })
    const status = async (token: string) =>
      until(
        () => accountStatus(other, token),
        status => status === 401,
        5_000,
      )
    for (const name of ['disable', 'signOut']) {
      const { id, token } = await signUp(app)
      t.strictSame([await accountStatus(app, token), await accountStatus(other, token)], [200, 200])
      await call(name, id)
      t.equal(await accountStatus(app, token), 401, `${name}: the next request here`)
      t.equal(await status(token), 401, `${name}: on the other instance`)
    }
    t.equal((await other.inject({ url: '/account', headers: bearer(user.token) })).statusCode, 200)
  })

  if (engine === 'sqlite')
    t.test('a writer thread that replaces another one has the operations', async t => {
      await t.rejects(call('exits'), { code: 'storeUnavailable' })
      const added = await until(
        () => call('add', newId(), user.id).catch(() => 'failed'),
        outcome => outcome === 'added',
        5_000,
      )
      t.equal(added, 'added')
    })
})
