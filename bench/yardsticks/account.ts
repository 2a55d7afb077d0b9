import { Account } from '../../routes/schemas.ts'
import { listen } from './bare-fastify.ts'
import { ACCOUNT } from './example-account.ts'

await listen({
  path: '/account',
  headers: { 'cache-control': 'no-store' },
  schema: Account,
  body: ACCOUNT,
})
