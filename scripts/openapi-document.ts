/** The OpenAPI document of a service with every route. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import { buildApp } from '../src/app.ts'

/** @returns its JSON. */
export const openApiDocument = async (): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openapi-'))
  try {
    const app = await buildApp(
      loadConfig(
        {
          NODE_ENV: 'test',
          LOG_LEVEL: 'silent',
          EMAIL_CODES: 'on',
          MAGIC_LINKS: 'on',
          DRAIN_DELAY: '0s',
          DATABASE_URL: `sqlite:${join(folder, 'empty.db')}`,
        },
        allFeatures(),
      ),
    )
    try {
      return (await app.inject('/openapi.json')).body
    } finally {
      await app.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
