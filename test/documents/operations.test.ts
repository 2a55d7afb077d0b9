/** Names of the operations in the OpenAPI document, from which client generators make methods (docs/design.md, "OpenAPI and client"). */
import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { build } from '../support/build.ts'
import { EMAIL_CODES } from '../support/email-codes.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { liveRoutes } from '../support/routes.ts'

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags: readonly string[]
}

const documentOf = async (app: FastifyInstance) => (await app.inject('/openapi.json')).json()

/** By method and path. */
const operationsOf = ({ paths }: { paths: object }): Record<string, Operation> =>
  Object.fromEntries(
    Object.entries<Record<string, Operation>>(paths as never).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation]),
    ),
  )

/** Every route of the core. A change of a released name breaks generated clients. */
const OPERATION_IDS = {
  'GET /': 'getService',
  'GET /health': 'getHealth',
  'GET /ready': 'getReadiness',
  'GET /.well-known/jwks.json': 'getJsonWebKeySet',
  'POST /account/sign-up': 'signUp',
  'POST /account/sign-in': 'signIn',
  'POST /account/sign-in/passkey': 'signInWithPasskey',
  'POST /account/sign-in/passkey/options': 'createPasskeySignInOptions',
  'POST /account/reauthenticate': 'reauthenticate',
  'POST /account/sign-out': 'signOut',
  'POST /account/email-code': 'requestEmailCode',
  'POST /account/sign-in/email-code': 'signInByEmailCode',
  'POST /account/forgot-password': 'forgotPassword',
  'POST /account/reset-password': 'resetPassword',
  'POST /account/verify-email': 'verifyEmail',
  'POST /account/verify-email/reject': 'rejectEmail',
  'POST /account/verify-email/resend': 'resendVerification',
  'GET /account': 'getAccount',
  'PUT /account': 'updateAccount',
  'DELETE /account': 'deleteAccount',
  'PUT /account/email': 'changeEmail',
  'GET /account/events': 'listOwnEvents',
  'GET /account/methods': 'listMethods',
  'PUT /account/password': 'changePassword',
  'DELETE /account/password': 'removePassword',
  'GET /account/sessions': 'listSessions',
  'DELETE /account/sessions': 'deleteSessions',
  'DELETE /account/sessions/{id}': 'deleteSession',
  'GET /account/passkeys': 'listPasskeys',
  'POST /account/passkeys': 'createPasskey',
  'POST /account/passkeys/options': 'createPasskeyOptions',
  'DELETE /account/passkeys/{id}': 'deletePasskey',
  'GET /account/api-keys': 'listApiKeys',
  'POST /account/api-keys': 'createApiKey',
  'DELETE /account/api-keys/{id}': 'deleteApiKey',
  'GET /account/totp': 'getTotp',
  'POST /account/totp': 'createTotp',
  'POST /account/totp/confirm': 'confirmTotp',
  'DELETE /account/totp': 'deleteTotp',
  'POST /account/recovery-codes': 'createRecoveryCodes',
  'GET /users': 'listProfiles',
  'GET /admin/users': 'listUsers',
  'POST /admin/users': 'createUser',
  'GET /admin/users/{id}': 'getUser',
  'PUT /admin/users/{id}': 'updateUser',
  'DELETE /admin/users/{id}': 'deleteUser',
  'GET /admin/users/export': 'exportUsers',
  'POST /admin/users/import': 'importUsers',
  'POST /admin/users/{id}/impersonate': 'impersonateUser',
  'DELETE /admin/users/{id}/sessions': 'deleteUserSessions',
  'DELETE /admin/users/{id}/factors': 'deleteUserFactors',
  'GET /admin/users/{id}/api-keys': 'listUserApiKeys',
  'DELETE /admin/users/{id}/api-keys/{keyId}': 'deleteUserApiKey',
  'GET /account/sign-in/providers': 'listProviders',
  'POST /account/sign-in/providers/{id}': 'startProviderSignIn',
  'POST /account/sign-in/providers/{id}/callback': 'finishProviderSignIn',
  'POST /account/identities': 'startIdentityLink',
  'POST /account/identities/link': 'linkIdentity',
  'GET /account/identities': 'listIdentities',
  'DELETE /account/identities/{id}': 'deleteIdentity',
  'GET /admin/users/{id}/identities': 'listUserIdentities',
  'DELETE /admin/users/{id}/identities/{identityId}': 'deleteUserIdentity',
  'GET /admin/keys': 'listAdminKeys',
  'POST /admin/keys': 'createAdminKey',
  'DELETE /admin/keys/{id}': 'deleteAdminKey',
  'POST /admin/introspect': 'introspectToken',
  'GET /admin/metrics': 'getMetrics',
  'GET /admin/events': 'listEvents',
  'GET /admin/status': 'getStatus',
  'POST /admin/warm-up': 'warmUpCache',
  'GET /admin/webhooks': 'listWebhooks',
  'POST /admin/webhooks': 'createWebhook',
  'GET /admin/webhooks/{id}': 'getWebhook',
  'PUT /admin/webhooks/{id}': 'updateWebhook',
  'DELETE /admin/webhooks/{id}': 'deleteWebhook',
  'GET /admin/webhooks/{id}/attempts': 'listWebhookAttempts',
  'POST /admin/webhooks/{id}/rotate-secret': 'rotateWebhookSecret',
  'POST /admin/webhooks/{id}/ping': 'pingWebhook',
  'POST /admin/webhooks/{id}/pause': 'pauseWebhook',
  'POST /admin/webhooks/{id}/resume': 'resumeWebhook',
  'POST /admin/webhooks/{id}/replay': 'replayWebhook',
}

t.test('operationIds are camelCase, unique and stable', async t => {
  const app = await build(t, { env: EMAIL_CODES, hasher: quickHashing })
  const operations = operationsOf(await documentOf(app))
  const ids = Object.values(operations).map(({ operationId }) => operationId)
  for (const id of ids) t.match(id, /^[a-z][a-zA-Z\d]*$/)
  t.equal(new Set(ids).size, ids.length)
  const ofCore = liveRoutes(app)
    .filter(
      ({ method, documentation, page, ofFeature }) =>
        method !== 'HEAD' && !documentation && !page && !ofFeature,
    )
    .map(({ method, url }) => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`)
  t.same(Object.fromEntries(ofCore.map(route => [route, operations[route]?.operationId])), OPERATION_IDS)
  for (const [route, { summary, description, tags }] of Object.entries(operations))
    t.ok(summary && description && tags.length === 1, `${route}: summary, description, tag`)
})

const response = { 200: Type.Object({}) }
const list = { 200: Type.Object({ results: Type.Array(Type.String()) }) }

t.test('a route that declares no names gets them from its method and URL', async t => {
  const app = await build(t, {
    hasher: quickHashing,
    extend: app => {
      app.get('/stories', { schema: { response: list } }, () => ({ results: [] }))
      app.get('/boxes', { schema: { response: { 200: Type.Array(Type.String()) } } }, () => [])
      app.post('/stories', { schema: { response } }, () => ({}))
      app.post('/stories/import', { schema: { response } }, () => ({}))
      app.get('/stories/:id', { schema: { response } }, () => ({}))
      app.put('/stories/:id', { schema: { response } }, () => ({}))
      app.delete('/stories/:id', { schema: { response } }, () => ({}))
      app.post('/stories/:id/publish', { schema: { response } }, () => ({}))
      app.get('/stories/:id/page-marks/:mark', { schema: { response } }, () => ({}))
      app.get('/address', { schema: { response } }, () => ({}))
      app.get('/admin/stories', { schema: { response: list } }, () => ({ results: [] }))
      const own = { operationId: 'readAloud', tags: ['voices'], response }
      app.get('/stories/voice', { schema: own }, () => ({}))
    },
  })
  const operations = operationsOf(await documentOf(app))
  const names = Object.entries(operations)
    .filter(([route]) => /stor|box|address/.test(route))
    .map(([route, { operationId, tags }]) => [route, operationId, tags?.join()])
  t.same(names, [
    ['GET /stories', 'listStories', 'stories'],
    ['POST /stories', 'createStory', 'stories'],
    ['GET /boxes', 'listBoxes', 'boxes'],
    ['POST /stories/import', 'importStories', 'stories'],
    ['GET /stories/{id}', 'getStory', 'stories'],
    ['PUT /stories/{id}', 'updateStory', 'stories'],
    ['DELETE /stories/{id}', 'deleteStory', 'stories'],
    ['POST /stories/{id}/publish', 'publishStory', 'stories'],
    ['GET /stories/{id}/page-marks/{mark}', 'getStoryPageMark', 'stories'],
    ['GET /address', 'getAddress', 'address'],
    ['GET /admin/stories', 'listAdminStories', 'admin stories'],
    ['GET /stories/voice', 'readAloud', 'voices'],
  ])
})

t.test('the service does not start with one operationId for two routes', async t => {
  const twice = (schema: object) =>
    build(t, {
      hasher: quickHashing,
      extend: app => {
        app.get('/a-b', { schema: { response } }, () => ({}))
        app.get('/a/b', { schema: { response, ...schema } }, () => ({}))
      },
    })
  await t.rejects(twice({}), {
    message: 'GET /a-b and GET /a/b have the operationId getAB: declare another one in a schema',
  })
  await twice({ operationId: 'getB' })
})
