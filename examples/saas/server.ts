/** A host that embeds Gatehouse: projects of organizations. README.md describes it. */
import Fastify, { type FastifyReply } from 'fastify'
import { actingUser } from '#feature/declaration'
import gatehouse, { ServiceError } from '../../src/gatehouse.ts'
import { homePage } from './page.ts'
import { receiveWebhooks, workspaceOf } from './projects.ts'

const { PORT = '4100', DATABASE_URL = 'sqlite:data/saas.db' } = process.env
const origin = `http://localhost:${PORT}`

const app = Fastify({ logger: true, forceCloseConnections: true })
await app.register(gatehouse, {
  prefix: '/auth',
  config: {
    DATABASE_URL,
    PUBLIC_URL: `${origin}/auth`,
    PRODUCT_NAME: 'Projects',
    WEBHOOK_ALLOWED_HOSTS: `localhost:${PORT}`,
  },
})
const { requireUser, requireGuards, services } = app.gatehouse

app.setErrorHandler((error, request, reply) => {
  if (!(error instanceof ServiceError)) throw error
  if (error.statusCode === 401 && request.url === '/') return reply.redirect('/auth/sign-in', 303)
  return reply.code(error.statusCode).headers(error.headers).send({ errors: error.errors })
})
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
  done(null, Object.fromEntries(new URLSearchParams(String(body)))),
)
const name = { type: 'string', minLength: 1, maxLength: 80 }
const schema = { body: { type: 'object', required: ['name'], properties: { name } } }
const back = (reply: FastifyReply) => reply.redirect('/', 303)

app.get('/', { onRequest: requireUser }, async (request, reply) => {
  const { results } = await services.organizations.list(request.user.id, 100)
  return reply.type('text/html; charset=utf-8').send(homePage(request.user.email, results))
})

app.post<{ Body: { name: string } }>(
  '/organizations',
  { onRequest: requireUser, schema },
  async (request, reply) => {
    const { user, body, ip } = request
    await services.organizations.create(user, body, request.requirePrincipal(), actingUser(user.id, ip))
    return back(reply)
  },
)

app.get<{ Params: { organizationId: string } }>(
  '/organizations/:organizationId/projects',
  { onRequest: requireGuards({ organization: true }) },
  async ({ organization }) => ({
    organization: organization.name,
    projects: workspaceOf(organization.id).projects,
  }),
)

app.post<{ Params: { organizationId: string }; Body: { name: string } }>(
  '/organizations/:organizationId/projects',
  { onRequest: requireGuards({ organization: ['admin'] }), schema },
  async ({ organization, body }, reply) => {
    workspaceOf(organization.id).projects.push(body.name)
    return back(reply)
  },
)

await app.register(receiveWebhooks, { url: `${origin}/webhooks` })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => app.close())
await app.listen({ host: 'localhost', port: Number(PORT) })
