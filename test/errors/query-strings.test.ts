/** A query string is percent-encoded UTF-8; invalid parameters are named in the error (RFC 3986 §2.1, §2.5). */
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { exampleOf } from '#http/openapi/bodies'
import { ADMIN_KEY, build, signUp } from '../support/build.ts'
import { errorsOf, globalErrorOf, type HttpResponse } from '../support/error-response.ts'
import { organizationOf } from '../support/organizations.ts'
import { lines, RawConnection } from '../support/raw-http.ts'

const app = await build(t)
await app.listen({ port: 0, host: '127.0.0.1' })
const { port } = app.server.address() as AddressInfo
const user = await signUp(app)
const { token } = user
const organization = await organizationOf(app, user)

/** Sends over a socket, since `inject` parses URLs itself. */
const ask = async (method: string, target: string, body = ''): Promise<HttpResponse> => {
  const request = [`Authorization: Bearer ${token}`, `X-Admin-Key: ${ADMIN_KEY}`, 'Connection: close']
  if (body !== '') request.push('Content-Type: application/json', `Content-Length: ${body.length}`)
  const head = lines(`${method} ${target} HTTP/1.1`, 'Host: a', ...request)
  const [response] = await new RawConnection(port).write(Buffer.from(head + body, 'latin1')).untilClosed()
  return response as HttpResponse
}

const NO_UTF8 = ['%FF', '%C3%28', '%', '%4', '%zz', 'a%ED%A0%80', '%C0%AF', '%F8%88%80%80%80', 'a+%80']

const parametersOf = (schema: unknown): string[] =>
  Object.keys((schema as { properties?: object } | undefined)?.properties ?? {})

/** A valid body, which is validated before the query string; empty where none is needed. */
const bodyOf = (schema: unknown): string => {
  const { required = [] } = (schema ?? {}) as { required?: readonly string[] }
  return required.length === 0 ? '' : JSON.stringify(exampleOf(schema as Parameters<typeof exampleOf>[0]))
}

/** Errors of pages, which are hidden from the document, are HTML. */
const ROUTES = app.routeTable
  .filter(({ options }) => !options.schema?.hide)
  .flatMap(({ url, methods, options }) =>
    parametersOf(options.schema?.querystring).flatMap(name =>
      methods
        .filter(method => method !== 'HEAD')
        .map(method => ({ url, method, name, body: bodyOf(options.schema?.body) })),
    ),
  )

t.test('invalid UTF-8 in a parameter of any route is an error under that parameter', async t => {
  t.ok(ROUTES.length > 20, `${ROUTES.length} of them`)
  for (const { url, method, name, body } of ROUTES) {
    const path = url
      .replace(':organizationId', organization.id)
      .replace(/:\w+/, '01890000-0000-7000-8000-000000000000')
    const title = `${method} ${path}?${name}`
    for (const value of NO_UTF8) {
      const response = await ask(method, `${path}?${name}=${value}`, body)
      t.strictSame(Object.keys(errorsOf(t, response, 400, title)), [name], `${title}=${value}`)
    }
  }
})

t.test('unknown parameters, names and paths are checked too', async t => {
  for (const query of ['nope=%FF', '%FF=1', '%', '%FF=%FF', 'limit=5&%C3%28=1']) {
    const errors = errorsOf(t, await ask('GET', `/users?${query}`), 400, query)
    t.strictSame(Object.values(errors), [['is not allowed']], query)
    t.ok(
      Object.keys(errors).every(name => name.isWellFormed()),
      `${query}: under a name that is text`,
    )
  }
  for (const path of ['/admin/users/%FF', '/admin/users/%C3%28', '/account/sessions/%', '/%FF'])
    globalErrorOf(t, await ask('GET', path), 400, path)
  globalErrorOf(t, await ask('GET', '/nope?search=%FF'), 404, 'an unknown route')
})

t.test('valid UTF-8 is read unchanged', async t => {
  for (const [query, search] of [
    ['search=%C3%A9', '\u00e9'],
    ['search=a+b%2Bc', 'a b+c'],
    ['search=%F0%9F%98%80', '\u{1f600}'],
    ['search=100%25', '100%'],
    ['sear%63h=%', undefined],
  ] as const) {
    const response = await ask('GET', `/users?${query}`)
    t.equal(response.statusCode, search === undefined ? 400 : 200, query)
  }
  t.equal((await ask('GET', '/users?limit=5&sort=-firstName&')).statusCode, 200)
  errorsOf(t, await ask('GET', '/users?limit=5&limit=6'), 400, 'twice')
})
