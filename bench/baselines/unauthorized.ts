import { ErrorBody } from '../../routes/schemas.ts'
import { ERRORS, errorBody } from '../../src/errors.ts'
import { listen } from './bare-fastify.ts'

const { status, field, message } = ERRORS.signInRequired

await listen({
  path: '/account',
  status,
  headers: { 'www-authenticate': process.env.CHALLENGE ?? '' },
  schema: ErrorBody,
  body: errorBody(field, message),
})
