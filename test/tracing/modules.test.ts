/** Without a collector no module of OpenTelemetry is loaded, neither with `import` nor with `require` (docs/design.md, "Observability"). */
import t from 'tap'
import { startCollector } from '../support/collector.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { type Running, startServer } from '../support/process.ts'
import { remoteSignUp } from '../support/remote-accounts.ts'

/** Prints the modules that tell: the hook is called for `import` and `require`, in threads too. */
const RECORD = `
import { writeSync } from 'node:fs'
import { registerHooks } from 'node:module'
registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    if (/opentelemetry|src.(app|tracing)|fastify.lib.reply/.test(resolved.url))
      writeSync(2, 'loads ' + resolved.url + '\\n')
    return resolved
  },
})
`

const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(RECORD)}`

const loadedBy = (server: Running): string[] =>
  [...server.output().matchAll(/^loads (.*)$/gm)].map(([, url = '']) => url)

const ofOpenTelemetry = (urls: readonly string[]): string[] =>
  urls.filter(url => /opentelemetry|src\/tracing/.test(url))

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  t.test('without OTEL_EXPORTER_OTLP_ENDPOINT nothing of OpenTelemetry is loaded', async t => {
    const env = { NODE_OPTIONS, DATABASE_URL: await newDatabase(t), OTEL_SERVICE_NAME: 'accounts' }
    const server = await startServer(t, { env })
    await remoteSignUp(server, 'ada@example.com')
    t.equal(await server.stop('SIGTERM'), 0)
    const loaded = loadedBy(server)
    for (const [file, loader] of [
      ['/src/app.ts', 'import'],
      ['/node_modules/fastify/lib/reply.js', 'require'],
    ] as const)
      t.ok(
        loaded.some(url => url.endsWith(file)),
        `modules of ${loader} are recorded`,
      )
    t.strictSame(ofOpenTelemetry(loaded), [])
  })
})

t.test('with it, OpenTelemetry is loaded', async t => {
  const { env } = await startCollector(t)
  const server = await startServer(t, { env: { NODE_OPTIONS, ...env } })
  t.equal(await server.stop('SIGTERM'), 0)
  t.ok(ofOpenTelemetry(loadedBy(server)).length > 10)
})
