/** Errors with a redirect target (§7.2): browsers are redirected, other clients get the error. */
import t from 'tap'
import { ServiceError } from '#base/errors'
import { bearer, build, logCapture, signUp } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'

const MESSAGE = 'There is no such user'
const TARGET = 'https://app.example.com/welcome?lang=en&next=%2Fhome%3Fa%3D1#top'

const BROWSERS = {
  Firefox: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  Chrome:
    'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7',
  'HTML alone': 'text/html',
  'in any letter case': 'Text/HTML',
}

const OTHERS = {
  curl: '*/*',
  JSON: 'application/json',
  'axios and friends': 'application/json, text/plain, */*',
  'JSON before HTML': 'application/json, text/html;q=0.5',
  'HTML refused': 'text/html;q=0, */*',
  'plain text': 'text/plain',
  none: undefined,
  garbage: ',;q==',
}

for (const NODE_ENV of ['development', 'production'])
  t.test(`errors with a redirect target in ${NODE_ENV} (§7.2)`, async t => {
    const log = logCapture()
    const app = await build(t, {
      env: { NODE_ENV, LOG_LEVEL: 'debug' },
      ...(NODE_ENV === 'production' ? { logStream: log.stream } : {}),
      extend: app => {
        const raise = (url: string, redirectTo: string): void => {
          app.all(url, () => Promise.reject(new ServiceError('userNotFound', { redirectTo })))
        }
        raise('/test/link', TARGET)
        raise('/test/bare', 'https://app.example.com')
        raise('/test/relative', '/signed-out?reason=link')
        raise('/test/has-error', 'https://app.example.com/?error=old&a=1')
        app.get('/test/busy', () => Promise.reject(new ServiceError('overloaded', { redirectTo: TARGET })))
        app.get('/test/cause', () => {
          const cause = new Error('secret detail')
          return Promise.reject(new ServiceError('internalError', { redirectTo: TARGET, cause }))
        })
      },
    })
    const locationOf = (value: unknown): URL => new URL(String(value), 'http://service.example')

    t.test('a browser gets 303 to the target with the message in ?error=', async t => {
      for (const [name, accept] of Object.entries(BROWSERS))
        for (const method of ['GET', 'HEAD', 'POST'] as const) {
          const response = await app.inject({ method, url: '/test/link', headers: { accept } })
          t.equal(response.statusCode, 303, `${method} ${name}`)
          const location = locationOf(response.headers.location)
          t.equal(location.origin + location.pathname, 'https://app.example.com/welcome', name)
          const parameters = { lang: 'en', next: '/home?a=1', error: MESSAGE }
          t.strictSame(Object.fromEntries(location.searchParams), parameters, `${name}: the query is kept`)
          t.equal(location.hash, '#top', `${name}: the fragment is kept`)
          t.notMatch(response.body, /\S/, 'and nothing to read')
        }
    })

    t.test('any other client gets the error, with the target in Location', async t => {
      for (const [name, accept] of Object.entries(OTHERS)) {
        const headers = accept === undefined ? {} : { accept }
        const response = await app.inject({ url: '/test/link', headers })
        t.equal(globalErrorOf(t, response, 404, name), MESSAGE)
        t.equal(response.headers.location, TARGET, `${name}: Location`)
      }
    })

    t.test('targets of every form are supported', async t => {
      const headers = { accept: BROWSERS.Firefox }
      const follow = async (url: string): Promise<URL> => {
        const response = await app.inject({ url, headers })
        t.equal(response.statusCode, 303, url)
        return locationOf(response.headers.location)
      }
      t.equal((await follow('/test/bare')).searchParams.get('error'), MESSAGE)
      const relative = await follow('/test/relative')
      t.equal(relative.pathname, '/signed-out')
      t.equal(relative.host, 'service.example', 'a relative target stays relative')
      t.strictSame(Object.fromEntries(relative.searchParams), { reason: 'link', error: MESSAGE })
      const old = await follow('/test/has-error')
      t.strictSame(old.searchParams.getAll('error'), [MESSAGE], 'the message, once')
      t.equal(old.searchParams.get('a'), '1')
    })

    t.test('the target never comes from the request', async t => {
      const response = await app.inject({
        url: '/test/link',
        headers: {
          accept: 'text/html',
          host: 'evil.example',
          'x-forwarded-host': 'evil.example',
          referer: 'https://evil.example/',
        },
      })
      t.equal(response.statusCode, 303)
      t.notMatch(JSON.stringify(response.headers), /evil/)
      const query = {
        redirectTo: 'https://evil.example',
        redirect_uri: 'https://evil.example',
        error: 'evil',
      }
      const withQuery = await app.inject({ url: '/test/link', query, headers: { accept: 'text/html' } })
      t.notMatch(JSON.stringify(withQuery.headers) + withQuery.body, /evil/)
    })

    t.test('other errors do not redirect a browser', async t => {
      const headers = { accept: BROWSERS.Firefox }
      globalErrorOf(t, await app.inject({ url: '/account', headers }), 401)
      const unknown = await app.inject({ url: '/nope', headers })
      t.equal(unknown.statusCode, 404)
      t.equal(unknown.headers.location, undefined)
    })

    t.test('a cause is never sent', async t => {
      for (const accept of ['text/html', '*/*']) {
        const response = await app.inject({ url: '/test/cause', headers: { accept } })
        t.notMatch(JSON.stringify(response.headers) + response.body, /secret detail/, accept)
      }
      const busy = await app.inject({ url: '/test/busy' })
      globalErrorOf(t, busy, 503)
      t.match(busy.headers, { 'retry-after': /^[1-9]\d*$/, location: TARGET })
    })

    if (NODE_ENV === 'production')
      t.test('a redirecting error is logged once like any other', async t => {
        const user = await signUp(app)
        for (const accept of ['text/html', '*/*']) {
          const before = log.records().length
          await app.inject({ url: '/test/link', headers: { accept, ...bearer(user.token) } })
          const records = log.records().slice(before)
          t.equal(records.length, 1, accept)
          t.match(records[0], { method: 'GET', route: '/test/link', userId: user.id, reqId: String })
        }
      })
  })
