import { Type } from '@sinclair/typebox'
import { listen } from './bare-fastify.ts'

await listen({
  path: '/health',
  headers: {},
  schema: Type.Object({ status: Type.Literal('ok') }),
  body: { status: 'ok' },
})
