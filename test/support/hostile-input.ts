/** Hostile input for fast-check: JSON texts, bytes, query strings and header values. */
import fc from 'fast-check'
import { codePoint } from './code-points.ts'

const HOSTILE_KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  '\u0000',
  '\ud800',
]
const KNOWN_KEYS = ['email', 'password', 'firstName', 'lastName', 'disabled', 'emailVerified', 'id', 'errors']
const HOSTILE_TEXTS = [
  ...['', ' ', '\u0000', 'a\u0000b', '\ud800', 'a\udfff', '\ufeff', '\u2028', '%00', "' OR 1=1 --"],
  ...[
    '__proto__',
    'null',
    'a@b',
    'a@b.c',
    '@',
    'A@EXAMPLE.COM',
    'x'.repeat(129),
    '😀'.repeat(129),
    '\r\nx: y',
  ],
]
/** JSON texts, some of which no JavaScript value has. */
const HOSTILE_VALUES = [
  ...['1e400', '-1e400', '9007199254740993', '-0', '1E5', '0.1e-400', 'true', 'null', '[]', '{}', '[[[[]]]]'],
  ...['"\\u0000"', '"\\ud800"', '"\\udc00x"', '{"__proto__":{"a":1}}', '{"constructor":{"prototype":{}}}'],
]

const text = fc.oneof(fc.constantFrom(...HOSTILE_TEXTS), fc.string({ unit: codePoint }))
const key = fc.oneof(fc.constantFrom(...KNOWN_KEYS), fc.constantFrom(...HOSTILE_KEYS), text)
const valueText = fc.oneof(
  fc.constantFrom(...HOSTILE_VALUES),
  text.map(value => JSON.stringify(value)),
  fc.jsonValue().map(value => JSON.stringify(value)),
)
const objectText = fc
  .array(fc.tuple(key, valueText), { maxLength: 6 })
  .map(pairs => `{${pairs.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join()}}`)

export const jsonBody = fc.oneof(
  objectText,
  valueText,
  fc.jsonValue().map(value => JSON.stringify(value)),
  fc
    .object({ key, values: [text, fc.boolean(), fc.double(), fc.constant(null)] })
    .map(v => JSON.stringify(v)),
)
export const rawBody = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map(bytes => Buffer.from(bytes)),
  fc.tuple(jsonBody, fc.nat(), fc.nat(255)).map(([json, at, byte]) => {
    const bytes = Buffer.from(json)
    if (bytes.length > 0) bytes[at % bytes.length] = byte
    return bytes
  }),
  fc.tuple(jsonBody, fc.nat()).map(([json, at]) => Buffer.from(json).subarray(0, at % (json.length + 1))),
)

const LIST_KEYS = [
  'limit',
  'cursor',
  'sort',
  'search',
  'email',
  'disabled',
  'count',
  '__proto__',
  'limit[]',
  'a.b',
]
const LIST_VALUES = [
  ...[
    '0',
    '1',
    '100',
    '101',
    '-1',
    '1e2',
    '1.5',
    'NaN',
    '9'.repeat(30),
    'true',
    'createdAt',
    '-firstName',
    '-',
  ],
  ...['%', '_', '\\', "'", '"', '%00', 'WyJ4Il0', 'e30', Buffer.from('{"a":1}').toString('base64url')],
]
/** The part of a URL after `?`. */
export const query = fc.oneof(
  fc
    .array(
      fc.tuple(
        fc.constantFrom(...LIST_KEYS),
        fc.oneof(fc.constantFrom(...LIST_VALUES), fc.string({ unit: codePoint })),
      ),
      {
        maxLength: 4,
      },
    )
    .map(pairs => pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')),
  fc.webQueryParameters(),
  fc.string().map(value => value.replace(/[#\s]/g, '%')),
)

/** Header values that Node accepts (RFC 9110 §5.5). */
const headerChar = fc.oneof(
  fc.integer({ min: 0x20, max: 0x7e }),
  fc.integer({ min: 0x80, max: 0xff }),
  fc.constant(9),
)
export const headerText = fc.array(headerChar, { maxLength: 80 }).map(codes => String.fromCharCode(...codes))
