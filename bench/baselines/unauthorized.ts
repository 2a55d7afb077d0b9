import { ERRORS, errorBody } from '#base/errors'
import { ErrorBody } from '#routes/schemas'
import { listen } from './bare-fastify.ts'

const { status, field, message } = ERRORS.signInRequired

await listen({
  path: '/account',
  status,
  headers: { 'www-authenticate': process.env.CHALLENGE ?? '' },
  schema: ErrorBody,
  body: errorBody(field, message),
})
