/** Bodies that are rejected before the handler: rows 400, 413 and 415 of docs/design.md, "Errors". */
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { asAdmin, bearer, build, PASSWORD, signUp } from '../support/build.ts'
import { errorsAt, errorsOf, globalErrorOf } from '../support/error-response.ts'

const LIMIT = 16 * 1024

const Nested = Type.Object(
  {
    address: Type.Optional(
      Type.Object(
        { city: Type.String(), street: Type.Optional(Type.String()) },
        { additionalProperties: false },
      ),
    ),
    items: Type.Optional(Type.Array(Type.Object({ name: Type.String() }, { additionalProperties: false }))),
  },
  { additionalProperties: false },
)

const app = await build(t, {
  extend: app => {
    app.post('/test/nested', { schema: { body: Nested } }, request => request.body)
  },
})

/** Posts these bytes as the body of a public route. */
const post = (payload: string | Buffer, contentType = 'application/json', url = '/account/sign-in') =>
  app.inject({ method: 'POST', url, payload, headers: { 'content-type': contentType } })

t.test('errors of nested fields have dotted paths', async t => {
  const send = (body: unknown) => post(JSON.stringify(body), 'application/json', '/test/nested')
  const body = { address: { street: 5, zip: 1 }, items: [{ name: 'a' }, { name: 5, more: 1 }], 'x.y': 1 }
  const errors = errorsOf(t, await send(body), 400)
  const paths = ['address.city', 'address.street', 'address.zip', 'items.1.more', 'items.1.name', 'x.y']
  t.strictSame(Object.keys(errors).sort(), paths, 'every failing field')
  for (const path of ['address.zip', 'items.1.more', 'x.y']) t.strictSame(errors[path], ['is not allowed'])
  const good = { address: { city: 'Ulm' }, items: [{ name: 'a' }, { name: 'b' }] }
  const response = await send(good)
  t.equal(response.statusCode, 200)
  t.strictSame(response.json(), good, 'the same key in different objects is no duplicate')
})

t.test('malformed JSON is a 400 under global (RFC 8259)', async t => {
  const bodies = ['{', '{"email":', '{email:1}', "{'email':1}", '{"a":1,}', '{"a":01}', '{"a":NaN}', '{} {}']
  const more = [
    'undefined',
    '{"a":"\u0001"}',
    '{"a":"\\x"}',
    '//\n{}',
    '{"a":1e}',
    '\u00a0{}',
    '{"a":"b',
    ' ',
  ]
  for (const body of [...bodies, ...more]) globalErrorOf(t, await post(body), 400, JSON.stringify(body))
})

t.test('a duplicate property is a 400 under global', async t => {
  const bodies = {
    'at the top': '{"email":"a@example.com","password":"x","email":"b@example.com"}',
    'the same value': '{"email":"a@example.com","password":"x","password":"x"}',
    'with an escape': '{"a":1,"\\u0061":2}',
    'with an escape, known name': '{"email":"a@example.com","password":"x","\\u0065mail":"b@example.com"}',
    'escape in either case': '{"\\u006a":1,"\\u006A":2}',
    'escaped slash': '{"a/b":1,"a\\/b":2}',
    nested: '{"email":{"x":1,"x":2},"password":"x"}',
    'nested with an escape': '{"email":[{"x":{"y":1,"\\u0079":2}}]}',
    'in an array of objects': '[{"a":1},{"a":2,"a":3}]',
    'after a nested object': '{"a":{"b":1},"a":2}',
    'with white space': '{"a" : 1 ,\n\t"a" : 2}',
    'the empty name': '{"":1,"":2}',
    'with quotes in it': '{"\\"":1,"\\u0022":2}',
    'outside the BMP': '{"😀":1,"\\ud83d\\ude00":2}',
  }
  for (const [title, body] of Object.entries(bodies)) globalErrorOf(t, await post(body), 400, title)
  const { token } = await signUp(app)
  const names = { firstName: '{"a":1,"a":2}', lastName: 'a","lastName":"b\\' }
  const response = await app.inject({
    method: 'PUT',
    url: '/account',
    headers: bearer(token),
    payload: names,
  })
  t.equal(response.statusCode, 200, 'what looks like a duplicate inside a string is text')
  t.match(response.json(), names, 'byte for byte')
})

t.test('dangerous keys are a 400 under global, and change no prototype', async t => {
  const bodies = [
    '{"__proto__":{"polluted":true}}',
    '{"email":"a@example.com","password":"x","__proto__":null}',
    '{"\\u005f_proto__":{"polluted":true}}',
    '{"__pro\\u0074o__":{"polluted":true}}',
    '{"a":[{"b":{"__proto__":{"polluted":true}}}]}',
    '{"constructor":{"prototype":{"polluted":true}}}',
    '{"constructor":{"\\u0070rototype":{"polluted":true}}}',
    '{"a":{"constructor":{"prototype":{}}}}',
  ]
  for (const body of bodies) {
    globalErrorOf(t, await post(body), 400, body)
    globalErrorOf(t, await post(body, 'application/json', '/test/nested'), 400, `nested: ${body}`)
  }
  t.notOk('polluted' in {}, 'no prototype was changed')
  errorsAt(t, await post('{"toString":1,"constructor":1,"hasOwnProperty":1}'), 400, [
    'constructor',
    'email',
    'hasOwnProperty',
    'password',
    'toString',
  ])
})

t.test('invalid UTF-8 is a 400 under global (RFC 8259 §8.1)', async t => {
  const sequences = {
    'a lone byte': [0xff],
    'a truncated character': [0xe2, 0x82],
    'an overlong slash': [0xc0, 0xaf],
    'a surrogate': [0xed, 0xa0, 0x80],
    'past U+10FFFF': [0xf4, 0x90, 0x80, 0x80],
    'Latin-1': [...Buffer.from('é', 'latin1')],
  }
  for (const [title, bytes] of Object.entries(sequences)) {
    const wrap = (before: string, after: string) =>
      Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])
    const value = wrap('{"email":"a@example.com","password":"', '"}')
    globalErrorOf(t, await post(value), 400, `${title} in a value`)
    globalErrorOf(t, await post(wrap('{"', '":1}')), 400, `${title} in a name`)
  }
  globalErrorOf(t, await post(Buffer.from('{"email":"a"}', 'utf16le')), 400, 'UTF-16')
})

t.test('bodies over 16 KiB are a 413 under global (RFC 9110 §15.5.14)', async t => {
  const json = JSON.stringify({ email: 'nobody@example.com', password: PASSWORD })
  t.equal((await post(json.padEnd(LIMIT))).statusCode, 401, 'exactly 16 KiB is read')
  globalErrorOf(t, await post(json.padEnd(LIMIT + 1)), 413, 'one byte more')
  globalErrorOf(t, await post(' '.repeat(LIMIT * 64)), 413, '1 MiB')
  globalErrorOf(t, await post('é'.repeat(LIMIT / 2 + 1)), 413, 'bytes count, not characters')
  const declared = await app.inject({
    method: 'POST',
    url: '/account/sign-in',
    headers: { 'content-type': 'application/json', 'content-length': '99999999999' },
    payload: '{}',
  })
  globalErrorOf(t, declared, 413, 'by its Content-Length')
})

t.test('media types other than application/json are a 415 under global (RFC 9110 §15.5.16)', async t => {
  const json = JSON.stringify({ email: 'nobody@example.com', password: PASSWORD })
  const types = [
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'garbage',
  ]
  const more = ['application/merge-patch+json', 'multipart/form-data; boundary=x', 'application/xml', '*/*']
  for (const type of [...types, ...more]) globalErrorOf(t, await post(json, type), 415, type)
  const untyped = await app.inject({ method: 'POST', url: '/account/sign-in', payload: Buffer.from(json) })
  globalErrorOf(t, untyped, 415, 'no Content-Type')
  const good = ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"']
  for (const type of good) t.equal((await post(json, type)).statusCode, 401, `${type} is read`)
})

t.test('encoded bodies are a 415 under global, JSON and NDJSON alike (RFC 9110 §8.4, §15.5.16)', async t => {
  const json = JSON.stringify({ email: 'nobody@example.com', password: PASSWORD })
  const send = (ndjson: boolean, parameters: string, coding?: string) =>
    app.inject({
      method: 'POST',
      url: ndjson ? '/admin/users/import' : '/account/sign-in',
      headers: {
        ...asAdmin,
        'content-type': `application/${ndjson ? 'x-ndjson' : 'json'}${parameters}`,
        ...(coding !== undefined && { 'content-encoding': coding }),
      },
      payload: json,
    })
  for (const ndjson of [false, true]) {
    const read = ndjson ? 200 : 401
    for (const parameters of [
      '; charset=utf-16',
      '; charset="latin1"',
      ';charset=ISO-8859-1',
      '; charset=us-ascii',
      '; charset=utf-8; charset=utf-16',
      '; a=b; Charset = utf-16le',
      '; charset=utf-8x',
      '; charset="utf-7"',
      '; charset=',
    ])
      globalErrorOf(t, await send(ndjson, parameters), 415, parameters)
    for (const parameters of [
      '',
      '; charset=utf-8',
      ';charset=UTF-8',
      '; charset="utf-8"',
      '; charset=utf8',
      '; a=b',
    ])
      t.equal((await send(ndjson, parameters)).statusCode, read, `${parameters} is read`)
    for (const coding of ['gzip', 'br', 'deflate, gzip', 'identity, gzip', 'x']) {
      const rejected = await send(ndjson, '', coding)
      globalErrorOf(t, rejected, 415, coding)
      t.equal(rejected.headers['accept-encoding'], 'identity', 'with what would be taken')
    }
    for (const coding of ['identity', 'Identity', ''])
      t.equal((await send(ndjson, '', coding)).statusCode, read, `${coding} is read`)
  }
})

t.test('a missing body or one that is not an object is a 400 under global', async t => {
  const { token } = await signUp(app)
  for (const body of ['[]', '[{"email":"a@example.com"}]', '"text"', '""', '5', 'null', 'true']) {
    globalErrorOf(t, await post(body), 400, body)
    const headers = { ...bearer(token), 'content-type': 'application/json' }
    const put = await app.inject({ method: 'PUT', url: '/account', headers, payload: body })
    globalErrorOf(t, put, 400, `PUT ${body}`)
  }
  globalErrorOf(t, await post(''), 400, 'an empty body')
  globalErrorOf(t, await app.inject({ method: 'POST', url: '/account/sign-in' }), 400, 'no body')
  const put = await app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload: {} })
  globalErrorOf(t, put, 400, 'at least one of the names')
})

t.test('null is no body, also where the body is optional', async t => {
  const { token } = await signUp(app)
  for (const [method, url] of [
    ['POST', '/account/sign-out'],
    ['POST', '/account/totp'],
    ['POST', '/account/sign-in/passkey/options'],
  ] as const) {
    const send = (payload: string) =>
      app.inject({
        method,
        url,
        headers: { ...bearer(token), 'content-type': 'application/json' },
        payload,
      })
    const message = globalErrorOf(t, await send('null'), 400, url)
    t.equal(message, 'The body must be a JSON object')
    globalErrorOf(t, await send(' null\n'), 400, url)
  }
})

t.test('8,000 nested levels are rejected like any other invalid body', async t => {
  const depth = 8000
  const bodies = {
    arrays: '['.repeat(depth) + ']'.repeat(depth),
    'in a field': `{"email":${'['.repeat(depth)}${']'.repeat(depth)},"password":"x"}`,
    objects: `${'{"a":'.repeat(2700)}1${'}'.repeat(2700)}`,
    'never closed': '['.repeat(LIMIT),
  }
  for (const [title, body] of Object.entries(bodies)) {
    errorsOf(t, await post(body), 400, title)
    errorsOf(t, await post(body, 'application/json', '/test/nested'), 400, `nested schema: ${title}`)
  }
  t.equal((await app.inject({ url: '/health' })).statusCode, 200, 'and the service goes on')
})
