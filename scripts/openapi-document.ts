/** The OpenAPI document of a service with every route. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import { buildApp } from '../src/app.ts'

/** Builds a service with every route, on an empty database, and closes it after `use`. */
export const withEveryRoute = async <Result>(
  use: (app: FastifyInstance) => Promise<Result>,
): Promise<Result> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openapi-'))
  try {
    const app = await buildApp(
      loadConfig(
        {
          NODE_ENV: 'test',
          LOG_LEVEL: 'silent',
          EMAIL_CODES: 'on',
          MAGIC_LINKS: 'on',
          JWT_ALGORITHM: 'EdDSA',
          OAUTH: 'on',
          FORWARD_AUTH: 'on',
          DRAIN_DELAY: '0s',
          DATABASE_URL: `sqlite:${join(folder, 'empty.db')}`,
        },
        allFeatures(),
      ),
    )
    try {
      return await use(app)
    } finally {
      await app.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** @returns its JSON. */
export const openApiDocument = (): Promise<string> =>
  withEveryRoute(async app => (await app.inject('/openapi.json')).body)
