/** TLS to PostgreSQL, as `sslmode` is documented: a real server, with its own authority and certificate. */
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type PostgresServer, startPostgres } from '../../scripts/postgres-server.ts'
import { build, JWT_SECRET, signIn, signUp, temporaryFolder } from '../support/build.ts'
import { query } from '../support/postgres.ts'
import { spawnServer } from '../support/process.ts'
import { until } from '../support/until.ts'

t.jobs = 3

const skip = spawnSync('openssl', ['version']).status === 0 ? false : 'needs openssl'

/** The user that scripts/postgres-server.ts runs it as if the test is root. */
const POSTGRES_UID = 65_534

/** An authority, and a key and certificate that it signed for `host`. */
const certificates = (folder: string, host: string) => {
  chmodSync(folder, 0o755)
  const file = (name: string): string => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    'ca.crt',
    '-days',
    '2',
    '-subj',
    '/CN=Test authority',
  )
  openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', `/CN=${host}`)
  writeFileSync(file('names'), `subjectAltName=DNS:${host}`)
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names']
  openssl('x509', '-req', '-in', 'server.csr', ...signed, '-days', '2', '-out', 'server.crt')
  if (process.getuid?.() === 0) chownSync(file('server.key'), POSTGRES_UID, POSTGRES_UID)
  chmodSync(file('server.key'), 0o600)
  return { authority: file('ca.crt'), certificate: file('server.crt'), key: file('server.key') }
}

/** A server with a certificate for `certified`, under the name `localhost`. */
const setUp = async (t: Test, certified = 'localhost') => {
  const { authority, certificate, key } = certificates(temporaryFolder(t), certified)
  const server: PostgresServer = await startPostgres({
    settings: { ssl: 'on', ssl_cert_file: certificate, ssl_key_file: key },
  })
  t.teardown(() => server.stop())
  const urlWith = (parameters: Record<string, string>, host = 'localhost'): string => {
    const url = new URL(server.url)
    url.hostname = host
    url.search = String(new URLSearchParams(parameters))
    return url.href
  }
  return { server, authority, urlWith }
}

/** A service that is expected not to start. */
const rejection = async (DATABASE_URL: string): Promise<{ code: number; output: string }> => {
  const child = spawnServer({ DATABASE_URL, JWT_SECRET, NODE_ENV: 'test', HOST: '127.0.0.1', PORT: '0' })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', chunk => {
      output += chunk
    })
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  return { code, output }
}

const CONNECTIONS = `SELECT a.query, s.ssl FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
  WHERE a.application_name = 'gatehouse'`

t.test('sslmode=verify-full encrypts every connection, including LISTEN', { skip }, async t => {
  const { server, authority, urlWith } = await setUp(t)
  const app = await build(t, {
    env: { DATABASE_URL: urlWith({ sslmode: 'verify-full', sslrootcert: authority }) },
  })
  const { email } = await signUp(app)
  t.equal((await signIn(app, email)).statusCode, 200)
  const isListening = (rows: Record<string, unknown>[]): boolean =>
    rows.some(({ query }) => /LISTEN|pg_listening_channels/.test(String(query)))
  const rows = await until(() => query(server.url, CONNECTIONS), isListening, 10_000)
  t.ok(isListening(rows), 'one listens')
  t.ok(rows.length >= 2)
  t.ok(
    rows.every(({ ssl }) => ssl === true),
    JSON.stringify(rows),
  )
})

t.test('a wrong authority or host name prevents the start', { skip }, async t => {
  const { server, authority, urlWith } = await setUp(t)
  const other = await setUp(t, 'db.example')
  const password = new URL(server.url).password
  const cases: [url: string, reason: RegExp][] = [
    [urlWith({ sslmode: 'verify-full' }), /unable to verify|self-signed|unable to get/],
    [urlWith({ sslmode: 'require' }), /unable to verify|self-signed|unable to get/],
    [
      urlWith({ sslmode: 'verify-full', sslrootcert: other.authority }),
      /unable to verify|self-signed|unable to get/,
    ],
    [
      other.urlWith({ sslmode: 'verify-full', sslrootcert: other.authority }),
      /localhost. is not in the cert's altnames: DNS:db\.example/,
    ],
    [
      urlWith({ sslmode: 'verify-full', sslrootcert: authority }, '127.0.0.1'),
      /127\.0\.0\.1 is not in the cert/,
    ],
    [urlWith({ sslmode: 'verify-full', sslrootcert: '/nowhere/ca.crt' }), /ENOENT.*\/nowhere\/ca\.crt/],
  ]
  for (const [url, reason] of cases) {
    const error = await build(t, { env: { DATABASE_URL: url } }).then(
      () => null,
      (error: Error) => error,
    )
    t.match(error?.message, reason)
    t.notMatch(error?.message, password)
  }
  // As a process: 0.7 s of a core each.
  for (const [url, reason] of cases.slice(-2)) {
    const { code, output } = await rejection(url)
    t.equal(code, 1, output)
    t.match(output, reason)
    t.match(output, /^Gatehouse cannot start: /m)
    t.notMatch(output, /listening|\n\s+at /)
    t.notMatch(output, password)
  }
})

t.test('sslmode=no-verify encrypts with any server, disable does not encrypt', { skip }, async t => {
  const { server, urlWith } = await setUp(t, 'db.example')
  for (const sslmode of ['no-verify', 'disable', '']) {
    const app = await build(t, { env: { DATABASE_URL: urlWith({ ...(sslmode && { sslmode }) }) } })
    await signUp(app)
    const rows = await query(server.url, CONNECTIONS)
    t.ok(rows.length > 0)
    t.ok(
      rows.every(({ ssl }) => ssl === (sslmode === 'no-verify')),
      sslmode,
    )
    await app.close()
  }
})

t.test('a server without TLS is rejected when TLS is required', { skip }, async t => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const { code, output } = await rejection(`${server.url}?sslmode=verify-full`)
  t.equal(code, 1)
  t.match(output, /^Gatehouse cannot start: .*SSL/m)
})
