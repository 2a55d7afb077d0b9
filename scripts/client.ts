/** Writes client/client.ts from the OpenAPI document of the service. Run it after a change of routes or schemas. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateClient } from '../client/generate.ts'
import { buildApp } from '../src/app.ts'
import { loadConfig } from '../src/config/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-client-'))
const app = await buildApp(
  loadConfig({
    ...{ NODE_ENV: 'test', LOG_LEVEL: 'silent', MAIL_URL: 'off', DRAIN_DELAY: '0s' },
    DATABASE_URL: `sqlite:${join(folder, 'empty.db')}`,
  }),
)
try {
  const document = (await app.inject('/openapi.json')).json()
  writeFileSync(
    join(import.meta.dirname, '..', 'client', 'client.ts'),
    generateClient(document, './runtime.ts'),
  )
} finally {
  await app.close()
  rmSync(folder, { recursive: true })
}
