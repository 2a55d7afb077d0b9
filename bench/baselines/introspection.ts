import { userScopesOf } from '#feature/declaration'
import { allFeatures } from '#features/built-in'
import { Introspection } from '#routes/schemas'
import { listen } from './bare-fastify.ts'
import { ACCOUNT } from './example-account.ts'

await listen({
  path: '/admin/introspect',
  requestBody: { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] },
  headers: { 'cache-control': 'no-store' },
  schema: Introspection,
  body: {
    active: true,
    token_type: 'Bearer',
    sub: ACCOUNT.id,
    scope: Object.keys(userScopesOf(allFeatures())).join(' '),
    roles: [],
    exp: 1_769_817_600,
    iat: 1_767_225_600,
    auth_time: 1_767_225_600,
    amr: ['pwd'],
    sid: ACCOUNT.id,
  },
})
