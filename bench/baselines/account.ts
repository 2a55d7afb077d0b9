import { Account } from '#routes/schemas'
import { listen } from './bare-fastify.ts'
import { ACCOUNT } from './example-account.ts'

await listen({
  path: '/account',
  headers: { 'cache-control': 'no-store', etag: '"1"' },
  schema: Account,
  body: ACCOUNT,
})
