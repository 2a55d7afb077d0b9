/** What the services of features are created with (docs/design.md, "Features"). */
import t from 'tap'
import type { FeatureConfig, ServicesOf } from '#feature/declaration'
import { build } from '../support/build.ts'
import { announcements } from './announcements.ts'

const services = { announcements: ({ config }: { config: FeatureConfig }) => config }

t.test('services know of the configuration what links and mails need, and no secret', async t => {
  const features = [{ ...announcements, services }]
  const configOf = async (env: Record<string, string>) => {
    const app = await build(t, { features, env })
    return (app.services as typeof app.services & ServicesOf<typeof features>).announcements
  }
  t.strictSame(await configOf({}), {
    publicUrl: 'http://127.0.0.1:3000',
    webUrl: 'http://127.0.0.1:3000',
    productName: '127.0.0.1:3000',
    isProduction: false,
    eventsKept: 365 * 86_400_000,
    sessionIdle: 10 * 86_400_000,
    requireEmailVerification: false,
  })
  const env = {
    PUBLIC_URL: 'https://example.com/api',
    PRODUCT_NAME: 'Acme',
    NODE_ENV: 'production',
    DOCS: 'off',
  }
  t.match(await configOf(env), {
    publicUrl: 'https://example.com/api',
    webUrl: 'https://example.com/api',
    productName: 'Acme',
  })
})
