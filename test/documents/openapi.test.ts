import { randomUUID } from 'node:crypto'
import { dereference, validate } from '@readme/openapi-parser'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { type DeclaredError, ERRORS } from '#base/errors'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import type { Feature } from '#feature/declaration'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { FEATURES } from '#features/own'
import { toLines } from '#http/validation/ndjson'
import { call, forgot } from '../support/account-routes.ts'
import { createKey as createAdminKey } from '../support/admin-keys.ts'
import { impersonate, postUser } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import { addTotp, beginTotp } from '../support/authenticator-apps.ts'
import {
  asAdmin,
  bearer,
  build,
  freshEmail,
  newFile,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { NDJSON } from '../support/bulk-users.ts'
import { codesOf, linksOf, MAILED_SIGN_INS } from '../support/email-codes.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { freshAccount, programOf, providersEnv, startProvider } from '../support/identity-provider.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox } from '../support/mailbox.ts'
import { addMember, organizationOf, team } from '../support/organizations.ts'
import { creationOptions, register, requestOptions } from '../support/passkeys.ts'
import { type RightRequest, responsesOf } from '../support/route-responses.ts'
import { type LiveRoute, liveRoutes } from '../support/routes.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'

const DATABASE_URL = await newFile(t)
/** A receiver of webhooks where nothing listens. */
const RECEIVER = '127.0.0.1:9'
// The origin for which passkeys are made.
const PUBLIC_URL = 'http://localhost:3000'
const provider = await startProvider(t, { publicUrl: PUBLIC_URL })
const app = await build(t, {
  hasher: quickHashing,
  // On, so that the headers of limits are sent.
  env: {
    ...MAILED_SIGN_INS,
    ...providersEnv([provider.entry()], [provider.issuer]),
    PUBLIC_URL,
    DATABASE_URL,
    RATE_LIMIT: 'on',
    WEBHOOK_ALLOWED_HOSTS: RECEIVER,
  },
  rateLimits: { ...RATE_LIMITS, perAddress: perAddress() },
})
const mails = mailbox(app)
const [codes, links] = [codesOf(app), linksOf(app)]
const program = programOf(app, provider)
const routes = liveRoutes(app).filter(({ page }) => !page)
const document = (await app.inject('/openapi.json')).json()

const operationAt = (method: string, url: string, paths = document.paths) =>
  paths[url.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()]

t.test('the document is valid OpenAPI 3.1 and lists exactly the live routes', async t => {
  t.match(document.openapi, /^3\.1\./)
  const result = await validate(structuredClone(document))
  t.ok(result.valid, JSON.stringify(result))
  const live = routes
    .filter(({ documentation, method }) => !documentation && method !== 'HEAD')
    .map(({ method, url }) => `${method.toLowerCase()} ${url.replace(/:(\w+)/g, '{$1}')}`)
  const documented = Object.entries<object>(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter(method => method !== 'head')
      .map(method => `${method} ${path}`),
  )
  t.same(documented.sort(), live.sort())
  t.notMatch(
    // Examples are values, which may have properties of these names.
    JSON.stringify(document, (key, value) => (/^examples?$/.test(key) ? undefined : value)),
    /"(normalize|emailAddress|personName|chosenPassword|idList)":|"text":"/,
    'no keyword that only this service knows',
  )
})

t.test('the document has what client generators need', async t => {
  const { paths, components } = document
  t.same(components.schemas.AuditEvent.properties.actor.properties.type, {
    type: 'string',
    enum: ['user', 'apiKey', 'client', 'adminKey', 'administrator', 'anonymous', 'system'],
  })
  const { get } = paths['/admin/users/export']
  t.same(Object.keys(get.responses['200'].content), ['application/x-ndjson'])
  const operations = Object.entries<Record<string, { responses: object }>>(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
  )
  for (const { name, responses } of operations) {
    t.ok('431' in responses, `${name}: 431`)
    for (const [status, response] of Object.entries<{ content?: object }>(responses as never))
      if (Number(status) >= 400)
        t.match(
          response.content,
          {
            'application/json': { schema: { $ref: '#/components/schemas/Errors' }, example: { errors: {} } },
          },
          `${name}: ${status}`,
        )
  }
})

interface ErrorResponse {
  readonly content: {
    readonly 'application/json': { readonly example: { errors: Record<string, string[]> } }
  }
}

/** The errors of the registry, as `status field message`. */
const KNOWN_ERRORS = new Set(
  [ERRORS, ...[...BUILT_IN_FEATURES, ...FEATURES].map(({ errors = {} }: Feature) => errors)]
    .flatMap(Object.values<DeclaredError>)
    .map(({ status, field, message }) => `${status} ${field} ${message}`),
)

t.test('each status of each route has the example of an error with this status', async t => {
  const examples = new Set<string>()
  for (const { method, url } of routes.filter(
    ({ documentation, method, ofFeature }) => !documentation && method !== 'HEAD' && !ofFeature,
  ))
    for (const [status, response] of Object.entries<ErrorResponse>(operationAt(method, url).responses)) {
      if (Number(status) < 400) continue
      const { example } = response.content['application/json']
      if (!t.ok(example, `${method} ${url}: declare ErrorOf(…) for ${status}`)) continue
      const { errors } = example
      const [[field = '', [message]] = ['', []], ...others] = Object.entries(errors)
      const name = `${status} ${field} ${message}`
      const isOfSchema = status === '400' && /^(is required|must be a valid id)$/.test(String(message))
      t.ok(others.length === 0 && (isOfSchema || KNOWN_ERRORS.has(name)), `${method} ${url}: ${name}`)
      examples.add(name)
    }
  t.ok(examples.size > 60, `${examples.size} different ones`)
})

t.test('bodies have a name, and are optional where a request may have none', async t => {
  const optional = []
  for (const { method, url, documentation } of routes) {
    const { requestBody } = documentation || method === 'HEAD' ? {} : operationAt(method, url)
    if (requestBody === undefined) continue
    for (const [type, { schema, example }] of Object.entries<{ schema: object; example: object }>(
      requestBody.content,
    )) {
      t.same(Object.keys(schema), ['$ref'], `${method} ${url}: ${type}`)
      t.type(example, Object)
    }
    const user = await signUp(app)
    const { id } = url.includes('/:organizationId') ? await organizationOf(app, user) : user
    const headers = { ...asAdmin, ...bearer(user.token) }
    const path = url.replace(/:\w+/, id).replace(/:\w+/, user.id)
    const { body } = await app.inject({ method, url: path, headers } as InjectOptions)
    const isRequired = body.includes('The body must be a JSON object')
    t.equal(requestBody.required, isRequired, `${method} ${url}: ${body}`)
    if (!isRequired) optional.push(`${method} ${url}`)
  }
  t.equal(optional.length, 12, optional.join(', '))
})

t.test('a route that accepts forms says so', async t => {
  const { content } = document.paths['/admin/introspect'].post.requestBody
  t.same(Object.keys(content), ['application/json', 'application/x-www-form-urlencoded'])
  t.same(...(Object.values(content) as [object, object]))
  t.same(Object.keys(document.paths['/account/sign-in'].post.requestBody.content), ['application/json'])
})

t.test('the service accepts the examples of the document', async t => {
  const bodyOf = (path: string) => document.paths[path].post.requestBody.content['application/json'].example
  const signedUp = await call(app, 'POST', '/account/sign-up', bodyOf('/account/sign-up'))
  t.equal(signedUp.statusCode, 201, signedUp.body)
  t.equal((await call(app, 'POST', '/account/sign-in', bodyOf('/account/sign-in'))).statusCode, 200)
})

const verification = async ({ email }: SignedUp) => ({ token: await mails.token(email, 'verification') })

/** An authenticator app is added first. */
const withTotp = async ({ token }: SignedUp) => {
  await addTotp(app, token)
  return {}
}

/** The bodies of requests for which the example of the document does not do: it names no existing user, token or code. */
const BODIES: Record<string, (user: SignedUp) => object | string | Promise<object>> = {
  'POST /account/sign-up': () => ({ email: freshEmail(), password: PASSWORD }),
  'POST /account/sign-in': ({ email }) => ({ email, password: PASSWORD }),
  'POST /account/sign-in/email-code': async ({ email }) => ({ email, emailCode: await codes.request(email) }),
  'POST /account/magic-link/check': async ({ email }) => ({ token: await links.request(email) }),
  'POST /account/sign-in/magic-link': async ({ email }) => ({ token: await links.request(email) }),
  'POST /account/verify-email': async user => ({ ...(await verification(user)), password: PASSWORD }),
  'POST /account/verify-email/reject': verification,
  'POST /account/reset-password': async ({ email }) => {
    await forgot(app, email)
    return { token: await mails.token(email, 'passwordReset'), password: PASSWORD }
  },
  'DELETE /account': () => ({ password: PASSWORD }),
  // A mailed code is another way to sign in, once the e-mail is confirmed.
  'DELETE /account/password': async user => {
    await updateUser(app, user.id, { emailVerified: true })
    return {}
  },
  'POST /account/api-keys': () => ({ name: 'a script' }),
  'POST /account/passkeys': async ({ token }) => ({
    credential: new SoftwareAuthenticator().create((await creationOptions(app, token)).json()),
    name: 'a laptop',
  }),
  'POST /account/sign-in/passkey': async ({ token }) => {
    const { authenticator } = await register(app, token)
    return { credential: authenticator.get((await requestOptions(app)).json()) }
  },
  'POST /account/identities': () => ({ provider: 'test' }),
  // An unknown identity with the e-mail of the account.
  'POST /account/identities/link': async ({ email }) => {
    provider.account = freshAccount({ email })
    const callback = await program.callback()
    await program.finish(callback)
    return { provider: 'test', flow: callback.flow }
  },
  'POST /account/sign-in/providers/:id/callback': () => {
    provider.account = freshAccount()
    return program.callback()
  },
  'POST /account/reauthenticate': () => ({ password: PASSWORD }),
  'POST /account/totp/confirm': async ({ token }) => ({ code: (await beginTotp(app, token)).code() }),
  'DELETE /account/totp': withTotp,
  'POST /account/recovery-codes': withTotp,
  'PUT /account/email': () => ({ email: freshEmail(), password: PASSWORD }),
  'PUT /account/password': () => ({ currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` }),
  'POST /admin/introspect': ({ token }) => ({ token }),
  'POST /admin/users': () => ({ email: freshEmail() }),
  'PUT /admin/users/:id': () => ({ firstName: 'Ann' }),
  'POST /admin/users/import': () => toLines([{ email: freshEmail() }]),
  'POST /organizations': () => ({ name: 'Example Inc.' }),
  'PUT /organizations/:organizationId': () => ({ name: 'Renamed' }),
  'PUT /admin/organizations/:organizationId': () => ({ maxMembers: 10 }),
  'POST /account/invitations/accept': async user => {
    await updateUser(app, user.id, { emailVerified: true })
    const { url, owner: inviter } = await team(app)
    const invitation = { email: user.email, roles: ['member'] }
    await call(app, 'POST', `${url}/invitations`, invitation, bearer(inviter.token))
    return { token: await mails.token(user.email, 'organizationInvitation') }
  },
  'POST /admin/webhooks': () => ({ url: `http://${RECEIVER}/` }),
  'PUT /admin/webhooks/:id': () => ({ description: 'Billing' }),
}

/** An organization that a user owns, with another member and two invitations. */
const ownOrganization = async (user: SignedUp) => {
  await updateUser(app, user.id, { emailVerified: true })
  const organization = await organizationOf(app, user)
  const { id: memberId } = await signUp(app)
  await addMember(app, organization.id, memberId)
  const invite = async () =>
    call(
      app,
      'POST',
      `/organizations/${organization.id}/invitations`,
      { email: freshEmail(), roles: ['member'] },
      bearer(user.token),
    )
  await invite()
  return { id: organization.id, memberId, invitationId: (await invite()).json().id }
}

/** The id of an organization, and of what the URL names in it. */
const idsInOrganization = async (url: string, user: SignedUp) => {
  const { id, memberId, invitationId } = await ownOrganization(user)
  return { id, keyId: url.includes('/invitations') ? invitationId : memberId }
}

/** Lists of a user's organizations, and of what is in one, have a second page. */
const PAGED = /\/(?:organizations|members|invitations)$/

/** There are at most a hundred webhooks. */
const webhookId = async (): Promise<string> => {
  const { results } = (await app.inject({ url: '/admin/webhooks', headers: asAdmin })).json()
  if (results.length > 0) return results[0].id
  const created = await call(app, 'POST', '/admin/webhooks', { url: `http://${RECEIVER}/` }, asAdmin)
  return created.json().id
}

/** The example of the document, for a route that requires a body. */
const exampleBody = ({ method, url }: Pick<LiveRoute, 'method' | 'url'>) => {
  const { requestBody } = operationAt(method, url)
  return requestBody?.required ? requestBody.content['application/json'].example : undefined
}

/** Adds what a route `/notes/:id` of a feature acts on, with `POST /notes` if there is one. @returns its id, or that of nothing. */
const featureId = async (route: LiveRoute, headers: Record<string, string>): Promise<string> => {
  const url = route.url.replace(/\/:id.*/, '')
  if (!routes.some(each => each.method === 'POST' && each.url === url)) return randomUUID()
  const added = await call(app, 'POST', url, exampleBody({ method: 'POST', url }), headers)
  return added.json().id
}

/** By route, the credentials of a key with every scope but that of the route. */
const limitedKeys = new Map<string, Promise<Record<string, string>>>()
const owner = await signUp(app)

const limitedKey = ({ method, url, gate, scope }: LiveRoute): Promise<Record<string, string>> => {
  const create = async (): Promise<Record<string, string>> => {
    const { userScopes, adminScopes } = app.services
    const others = (declared: object) => Object.keys(declared).filter(name => name !== scope)
    if (gate === undefined) return {}
    if (gate === 'adminKey') return { ...(await createAdminKey(app, others(adminScopes))).headers }
    const request = { name: 'of a test', scopes: others(userScopes) }
    return bearer((await call(app, 'POST', '/account/api-keys', request, bearer(owner.token))).json().token)
  }
  const name = `${method} ${url}`
  const created = limitedKeys.get(name) ?? create()
  limitedKeys.set(name, created)
  return created
}

const linkedIdentity = async ({ token }: SignedUp): Promise<string> => {
  provider.account = freshAccount()
  return (await program.link(token)).json().id
}

const rightRequest = async (route: LiveRoute): Promise<RightRequest> => {
  const { method, url, gate, roles, ofFeature } = route
  const user = await signUp(app)
  if (roles !== undefined) await updateUser(app, user.id, { roles })
  const name = `${method} ${url}`
  const sessions = await app.inject({ url: '/account/sessions', headers: bearer(user.token) })
  const credentials = { user: bearer(user.token), adminKey: asAdmin }
  const payload = name in BODIES ? await BODIES[name]?.(user) : exampleBody(route)
  const { apiKey: created } = await createKey(app, user.token)
  const idFor = async (): Promise<string> => {
    if (url.startsWith('/admin/keys')) return (await createAdminKey(app, ['users:read'])).id
    if (url.startsWith('/account/sessions')) return sessions.json().results[0].id
    if (url.startsWith('/account/api-keys')) return created.id
    if (url.startsWith('/admin/webhooks/:id')) return webhookId()
    if (url.startsWith('/account/passkeys/:id')) return (await register(app, user.token)).id
    if (url.startsWith('/account/sign-in/providers/:id')) return 'test'
    if (url.startsWith('/account/identities/:id')) return linkedIdentity(user)
    return ofFeature && url.includes('/:id') ? featureId(route, gate ? credentials[gate] : {}) : user.id
  }
  const keyId = async (): Promise<string> => {
    if (url.includes('/identities/')) return linkedIdentity(user)
    return url.includes('/sessions/') ? sessions.json().results[0].id : created.id
  }
  if (name === 'GET /organizations' || url === '/admin/users/:id/organizations') {
    await organizationOf(app, user)
    await organizationOf(app, user)
  }
  const ids = url.includes('/:organizationId')
    ? await idsInOrganization(url, user)
    : {
        id: await idFor(),
        keyId: await keyId(),
      }
  return {
    headers: {
      ...(gate && credentials[gate]),
      ...(typeof payload === 'string' && NDJSON),
    },
    token: user.token,
    impersonation: (await impersonate(app, user.id)).json().accessToken,
    limited: await limitedKey(route),
    ...ids,
    ...(method === 'GET' && PAGED.test(url) && url !== '/account/invitations' && { query: { limit: '1' } }),
    ...(payload !== undefined && { payload }),
  }
}

/** Headers of HTTP and its caches, which any response of any service may have. */
const GENERAL_HEADERS = new Set([
  'x-content-type-options',
  'cache-control',
  'connection',
  'content-disposition',
  'content-length',
  'content-type',
  'date',
  'transfer-encoding',
  'vary',
])

const sentHeaders = ({ headers }: LightMyRequestResponse): string[] =>
  Object.keys(headers).filter(name => !GENERAL_HEADERS.has(name))

const documentedHeaders = ({ headers = {} }: { headers?: object }): string[] =>
  Object.keys(headers)
    .map(name => name.toLowerCase())
    .sort()

/** Statuses of which the requests of the next test have the most likely reason. */
const provoked = ({ gate, url, ofFeature }: LiveRoute): string[] => [
  ...(gate === undefined ? [] : ['401']),
  ...(url.split(':').length === 2 && !ofFeature ? ['404'] : []),
  '412',
  '413',
  '415',
]

t.test('every status and header that a route sends is documented', async t => {
  const { paths } = (await dereference(structuredClone(document))) as typeof document
  const operationOf = ({ method, url }: LiveRoute) => operationAt(method, url, paths)
  /** The headers that were sent, by documented response. */
  const sent = new Map<object, { title: string; names: Set<string> }>()
  const isDocumented = (t: Test, route: LiveRoute, response: LightMyRequestResponse, what: string) => {
    const { statusCode, headers, body } = response
    const title = `${what}: ${statusCode}`
    const documented = operationOf(route).responses[statusCode]
    if (!t.ok(documented, title)) return
    const { names } = sent.get(documented) ?? { names: new Set() }
    // A list of a feature may have too few items for a `Link`.
    if (!route.ofFeature)
      sent.set(documented, { title: `${route.method} ${route.url}: ${statusCode}`, names })
    for (const name of sentHeaders(response)) names.add(name)
    if (!/^application\/json/.test(String(headers['content-type']))) return
    const content = documented.content['application/json']
    if (!t.ok(content, `${title} in application/json`)) return
    const { schema } = content
    const known = (schema.anyOf ?? [schema]).map(({ properties }: { properties: object }) => properties)
    const others = Object.keys(JSON.parse(body)).filter(key => !(key in Object.assign({}, ...known)))
    t.same(others, [], `${title}: no property besides those documented`)
  }
  const tried = routes.filter(({ documentation, method }) => !documentation && method !== 'HEAD')
  for (const route of tried)
    await t.test(`${route.method} ${route.url}`, async t => {
      const received = new Set<string>()
      for await (const [title, response] of responsesOf(app, route, () => rightRequest(route))) {
        // Whether the example of a feature is accepted can depend on what is stored, such as a value that must be unique.
        if (title === 'right' && !route.ofFeature) t.ok(response.statusCode < 400, `right: ${response.body}`)
        isDocumented(t, route, response, title)
        received.add(`${response.statusCode} ${response.body}`)
        if (title !== 'another version') continue
        const { parameters = [] } = operationOf(route)
        const headers = parameters.filter((parameter: { in: string }) => parameter.in === 'header')
        const ifMatch = { name: 'If-Match', in: 'header', required: false, schema: { type: 'string' } }
        t.equal(headers.length, response.statusCode === 412 ? 1 : 0, 'If-Match where it is honoured alone')
        if (response.statusCode === 412) t.match(headers[0], ifMatch)
      }
      for (const status of provoked(route).filter(status =>
        [...received].some(each => each.startsWith(status)),
      )) {
        const { example } = operationOf(route).responses[status].content['application/json']
        t.ok(received.has(`${status} ${JSON.stringify(example)}`), `${status}: the example is a response`)
      }
    })
  const { email, token } = await signUp(app)
  const { id, email: disabled } = await signUp(app)
  await updateUser(app, id, { disabled: true })
  const unproved = { token: await mails.token(email, 'verification') }
  const strict = await build(t, {
    hasher: quickHashing,
    env: { DATABASE_URL, REQUIRE_EMAIL_VERIFICATION: 'true' },
  })
  const signUpOf = { email: freshEmail(), password: PASSWORD }
  await call(strict, 'POST', '/account/sign-up', signUpOf)
  const pending = { token: await mailbox(strict).token(signUpOf.email, 'signUp'), password: PASSWORD }
  const responses = [
    ['/account/verify-email', 403, await call(app, 'POST', '/account/verify-email', unproved)],
    ['/account/verify-email', 200, await call(app, 'POST', '/account/verify-email', pending)],
    ['/account/sign-up', 409, await call(app, 'POST', '/account/sign-up', { email, password: PASSWORD })],
    ['/account/sign-in', 401, await signIn(app, email, 'wrong')],
    ['/account/sign-in', 403, await signIn(app, disabled)],
    ['/admin/users', 409, await postUser(app, { email })],
    ['/admin/users/:id', 409, await updateUser(app, id, { email })],
    ['/admin/users', 200, await app.inject({ url: '/admin/users?count=true&limit=1', headers: asAdmin })],
    ['/admin/events', 200, await app.inject({ url: '/admin/events?limit=1', headers: asAdmin })],
    ['/users', 200, await app.inject({ url: '/users?limit=1', headers: bearer(token) })],
    [
      '/account/events',
      200,
      await app.inject({ url: '/account/events?sort=at&limit=1', headers: bearer(token) }),
    ],
    [
      '/account/sessions',
      204,
      await call(app, 'DELETE', '/account/sessions?scope=all', undefined, bearer(token)),
    ],
  ] as const
  for (const [url, status, response] of responses) {
    const route = tried.find(route => route.url === url && route.method === response.raw.req.method)
    t.equal(response.statusCode, status)
    if (t.ok(route, url)) isDocumented(t, route as LiveRoute, response, url)
  }
  for (const [response, { title, names }] of sent) {
    // Errors that come before counting have the same status as later ones.
    const isGuarded = title.includes('/:organizationId') && title.endsWith(': 404')
    const uncounted = (/: 40[13]$/.test(title) || isGuarded) && !names.has('ratelimit')
    const documented = documentedHeaders(response).filter(
      name => !(uncounted && name.startsWith('ratelimit')),
    )
    t.same([...names].sort(), documented, `${title}: exactly the headers that are documented`)
  }
})

t.test('responses with Retry-After have the documented headers', async t => {
  const limited = await build(t, {
    env: { RATE_LIMIT: 'on' },
    rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ mail: 0 }) },
  })
  const tooMany = await forgot(limited, freshEmail())
  await limited.drain()
  const draining = await limited.inject('/ready')
  const { paths } = document
  for (const [response, status, operation] of [
    [tooMany, 429, paths['/account/forgot-password'].post],
    [draining, 503, paths['/ready'].get],
  ] as const) {
    t.equal(response.statusCode, status)
    t.same(sentHeaders(response).sort(), documentedHeaders(operation.responses[status]))
  }
})
