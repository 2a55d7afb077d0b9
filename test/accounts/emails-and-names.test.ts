/** Rules for e-mails and names, and their messages, on every route that takes one (docs/design.md, "Contract"). */
import fc from 'fast-check'
import t from 'tap'
import { OPERATOR } from '#core/audit-log/event'
import { canonicalEmail } from '#core/users/user'
import { emailViolations, nameViolations, newEmailViolations } from '#http/validation/formats'
import { call, changeEmail, forgot } from '../support/account-routes.ts'
import { postUser } from '../support/admin-routes.ts'
import {
  asAdmin,
  bearer,
  confirmedUser,
  freshEmail,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { organizationOf } from '../support/organizations.ts'

const INVALID = 'must be a valid e-mail address'
const ASCII = 'must have ASCII characters only: write an international domain in its xn-- form'
const QUOTED = 'must not have quotes before the @'
const LITERAL = 'must have a domain name after the @, not an IP address'
const LOCAL_PART = 'must have at most 64 characters before the @'
const LABEL = 'must have at most 63 characters between the dots of its domain'
const NUMBER = 'must have a domain name after the @, not an IP address or a number'

/** Rejected wherever an e-mail is given. */
const NO_EMAILS: Readonly<Record<string, readonly string[]>> = {
  [INVALID]: [
    ...[
      '',
      'ann',
      '@',
      'ann@',
      '@example.com',
      'ann@localhost',
      'ann@com',
      'a b@example.com',
      'a@b@example.com',
    ],
    ...['.ann@example.com', 'ann.@example.com', 'a..n@example.com', 'ann@.example.com', 'ann@example..com'],
    ...['ann@example.com.', 'ann@-example.com', 'ann@example-.com', 'ann@exa_mple.com', 'ann@example.com-'],
    ...['ann(comment)@example.com', 'Ann <ann@example.com>', 'mailto:ann@example.com', 'a,b@example.com'],
    ...['ann@exam\nple.com', 'ann@2001:db8::1', 'ann@xn--.example', 'ann%@example.com\t.x'],
  ],
  [ASCII]: [
    'änn@example.com',
    'ann@bücher.example',
    '安@example.com',
    'ann@例え.jp',
    'ann\u200b@example.com',
    // Their other letter case is ASCII, and `trim` removes the last ones.
    ...['jac\u212a@example.com', 'ann@\u212a.example', '\u0130van@example.com', 'je\u017f@example.com'],
    ...['\uff41nn@example.com', '\ufeffann@example.com', 'ann@example.com\u00a0', 'ann@example.com\u2028'],
  ],
  [QUOTED]: ['"ann"@example.com', '"a b"@example.com', '"a@b"@example.com'],
  [LITERAL]: ['ann@[192.0.2.1]', 'ann@[ipv6:2001:db8::1]'],
}

/** Rejected for new accounts. Existing accounts may have such an e-mail. */
const UNDELIVERABLE: Readonly<Record<string, readonly string[]>> = {
  [LOCAL_PART]: [`${'a'.repeat(65)}@example.com`],
  [LABEL]: [`ann@${'a'.repeat(64)}.com`, `ann@example.${'a'.repeat(64)}`],
  [NUMBER]: ['ann@192.0.2.1', 'ann@example.123', 'ann@1.1'],
}

const EMAILS = [
  ...['ann@example.com', 'a@b.co', 'ann+tag@example.com', "o'brien@example.com", 'a.b-c_d@sub.example.com'],
  ...["!#$%&'*+/=?^_`{|}~-@example.com", 'ann@xn--bcher-kva.example', 'ann@example.xn--p1ai', '1@1.example'],
  ...[
    `${'a'.repeat(64)}@example.com`,
    `ann@${'a'.repeat(63)}.com`,
    'ann@3com.com',
    'ann@a-b--c.example',
    'ann@example.c0m',
  ],
]

t.test('each reason to reject an e-mail has its own message', t => {
  for (const [message, emails] of Object.entries(NO_EMAILS))
    for (const email of emails)
      for (const failures of [emailViolations, newEmailViolations])
        t.strictSame(failures(email), [message], encodeURIComponent(email))
  for (const [message, emails] of Object.entries(UNDELIVERABLE))
    for (const email of emails) {
      t.strictSame(newEmailViolations(email), [message], email)
      t.strictSame(emailViolations(email), [], `${email} of an account that is there`)
    }
  for (const email of EMAILS) t.strictSame(newEmailViolations(email), [], email)
  t.end()
})

t.test('an accepted e-mail is a path that SMTP can carry (RFC 5321 §4.5.3.1)', t => {
  const piece = fc.string({ maxLength: 70 })
  const almost = fc.oneof(
    fc.emailAddress(),
    fc.tuple(piece, piece).map(parts => parts.join('@')),
    fc
      .tuple(fc.constantFrom(...EMAILS), fc.nat(20), piece)
      .map(([e, at, text]) => e.slice(0, at) + text + e.slice(at)),
  )
  fc.assert(
    fc.property(almost, email => {
      if (newEmailViolations(email).length > 0) return true
      const [local = '', domain = '', ...more] = email.split('@')
      const labels = domain.split('.')
      return (
        more.length === 0 &&
        /^[\x21-\x7e]{1,64}$/.test(local) &&
        labels.length >= 2 &&
        labels.every(label => /^(?!-)[a-z0-9-]{1,63}(?<!-)$/i.test(label)) &&
        !/^\d+$/.test(labels.at(-1) ?? '')
      )
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

t.test('D1: no character beyond ASCII becomes part of a valid e-mail', t => {
  for (let point = 0x80; point <= 0xffff; point += 1) {
    const character = String.fromCodePoint(point)
    for (const email of [`${character}ann@example.com`, `ann@example.com${character}`])
      if (newEmailViolations(canonicalEmail(email)).length === 0)
        t.fail(`U+${point.toString(16)} of ${JSON.stringify(email)}`)
  }
  t.end()
})

const CONTROL = 'must not have line breaks or other control characters'
const DIRECTION =
  'must not have characters that change the direction of text: leave out U+202A to U+202E and U+2066 to U+2069'
const UNSEEN = 'must have at least one visible character'

const NO_NAMES: Readonly<Record<string, readonly string[]>> = {
  [CONTROL]: [
    'a\nb',
    'a\r\nb',
    'a\tb',
    'a\u0001',
    '\u001b[2J',
    'a\u007f',
    'a\u0085b',
    'a\u2028b',
    'a\u2029b',
  ],
  [DIRECTION]: [
    '\u202eevil',
    'a\u202a',
    '\u202bمحمد\u202c',
    'a\u202d',
    '\u2066a\u2069',
    'a\u2067',
    'a\u2068',
  ],
  [UNSEEN]: [
    ...[
      '\u200b',
      '\u200d',
      '\ufeff',
      '\u00ad',
      '\u3164',
      '\u115f\u1160',
      '\uffa0',
      '\u2800',
      '\u0301',
      '\u200e',
    ],
    ...['\u200b \u200c', '\ufe0f', '\u{e0001}\u{e007f}', '\u034f', '\u180e', '\u061c'],
    // Noncharacters, and characters for private use.
    ...['\ufffe', '\uffff', '\ufdd0\ufdef', '\u{1fffe}', '\u{10ffff}', '\ufffe \u0301'],
    ...['\ue000', '\uf8ff\u{f0000}', '\u{10fffd}'],
  ],
}

const NAMES = [
  ...[
    'Ann',
    "O'Brien",
    'Jean-Luc',
    'X Æ A-12',
    'نیلوفر\u200cالملوک',
    'क्\u200dष',
    'שלום\u200f',
    'a\u200eb',
    '\u061cمحمد',
  ],
  ...[
    '👩\u200d👩\u200d👧\u200d👦',
    '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}',
    '❤\ufe0f',
    'e\u0301\u0323',
  ],
  ...['全角', 'a\u{10ffff}', 'a\ue000', '-', '7', 'a\u00a0b'],
  // The newest scripts, and a code point that a later version of Unicode may assign.
  ...['\u{11bc0}', '𞄀', '𐴀', 'ꯀ', '\u{1e5d0}', '\u{3fffd}', '©', '€', '①'],
]

t.test('each reason to reject a name has its own message', t => {
  for (const [message, names] of Object.entries(NO_NAMES))
    for (const name of names) t.strictSame(nameViolations(name), [message], encodeURIComponent(name))
  for (const name of NAMES) t.strictSame(nameViolations(name), [], encodeURIComponent(name))
  t.strictSame(nameViolations('\u202e\n'), [CONTROL, DIRECTION, UNSEEN])
  const letters = fc.string({
    unit: fc.constantFrom('a', 'é', 'א', '字', '🦊', '\u200d', ' ', '\u0301'),
    minLength: 1,
  })
  fc.assert(fc.property(letters, name => nameViolations(`x${name}`).length === 0))
  const bad = fc.constantFrom('\u202e', '\u2066', '\n', '\u0007', '\u2028')
  fc.assert(fc.property(letters, bad, letters, (...parts) => nameViolations(parts.join('')).length > 0))
  t.end()
})

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, {
    hasher: quickHashing,
    env: { ...MAILED_SIGN_INS, MAIL_URL: 'smtp://127.0.0.1:1' },
  })
  const importLine = async (line: object) => {
    const response = await app.inject({
      method: 'POST',
      url: '/admin/users/import',
      headers: { ...asAdmin, 'content-type': 'application/x-ndjson' },
      payload: `${JSON.stringify(line)}\n`,
    })
    return JSON.parse(response.body.split('\n')[0] ?? '')
  }

  t.test('every route that takes an e-mail applies the same rules', async t => {
    const { token, id } = await signUp(app)
    for (const [message, emails] of Object.entries({ ...NO_EMAILS, ...UNDELIVERABLE }))
      for (const email of [emails.at(-1) ?? '', `  ${emails[0]?.toUpperCase()}`]) {
        for (const [way, response] of [
          ['sign-up', await call(app, 'POST', '/account/sign-up', { email, password: PASSWORD })],
          ['change', await changeEmail(app, token, { email, password: PASSWORD })],
          ['admin', await postUser(app, { email })],
          ['admin change', await updateUser(app, id, { email })],
        ] as const) {
          t.equal(response.statusCode, 400, `${way}: ${encodeURIComponent(email)}`)
          t.strictSame(response.json(), { errors: { email: [message] } })
        }
        t.match(await importLine({ email }), { status: 'failed', errors: { email: [message] } })
      }
    for (const email of EMAILS) t.equal((await postUser(app, { email })).statusCode, 201, email)
  })

  t.test('an account with an e-mail that current rules reject can still sign in', async t => {
    for (const email of Object.values(UNDELIVERABLE).flat()) {
      await app.services.newAccounts.create({ email, password: PASSWORD }, OPERATOR)
      t.equal((await signIn(app, email)).statusCode, 200, email)
      t.equal((await forgot(app, email)).statusCode, 202)
      const found = await app.inject({ url: '/admin/users', query: { email }, headers: asAdmin })
      t.equal(found.json().results.length, 1)
    }
    for (const [message, emails] of Object.entries(NO_EMAILS))
      for (const email of emails)
        for (const response of [await signIn(app, email), await forgot(app, email)]) {
          t.equal(response.statusCode, 400)
          t.strictSame(response.json(), { errors: { email: [message] } })
        }
  })

  t.test('D1: an address that only looks like the canonical one of a user is refused everywhere', async t => {
    const victim = freshEmail('jack')
    const { token, id } = await signUp(app, { email: victim })
    const owner = await confirmedUser(app)
    const invitations = `/organizations/${(await organizationOf(app, owner)).id}/invitations`
    for (const email of [
      victim.replace('k', '\u212a'),
      `\ufeff${victim}`,
      `${victim}\u00a0`,
      `\u2028${victim}`,
    ]) {
      for (const [way, response] of Object.entries({
        'sign-in': await signIn(app, email),
        'forgotten password': await forgot(app, email),
        code: await call(app, 'POST', '/account/email-code', { email }),
        'code to sign in': await call(app, 'POST', '/account/sign-in/email-code', {
          email,
          emailCode: '12345678',
        }),
        link: await call(app, 'POST', '/account/magic-link', { email }),
        change: await changeEmail(app, token, { email, password: PASSWORD }),
        invitation: await call(app, 'POST', invitations, { email, roles: ['member'] }, bearer(owner.token)),
        'admin change': await updateUser(app, id, { email }),
        filter: await app.inject({ url: '/admin/users', query: { email }, headers: asAdmin }),
      })) {
        t.equal(response.statusCode, 400, `${way}: ${response.body}`)
        t.strictSame(response.json(), { errors: { email: [ASCII] } }, way)
      }
      t.match(await importLine({ email }), { status: 'failed', errors: { email: [ASCII] } })
      const identity = { provider: 'x', issuer: 'https://idp.example', subject: 'x', email }
      const imported = await importLine({ email: freshEmail(), credentials: { identities: [identity] } })
      t.match(imported, { status: 'failed', errors: { 'credentials.identities.0.email': [ASCII] } })
    }
  })

  t.test('every route that takes a name applies the same rules', async t => {
    const { token, id } = await signUp(app)
    for (const [message, names] of Object.entries(NO_NAMES)) {
      const firstName = names[0]
      const lastName = names.at(-1)
      const body = { errors: { firstName: [message], lastName: [message] } }
      for (const [way, response] of [
        [
          'sign-up',
          await call(app, 'POST', '/account/sign-up', {
            email: freshEmail(),
            password: PASSWORD,
            firstName,
            lastName,
          }),
        ],
        ['PUT /account', await call(app, 'PUT', '/account', { firstName, lastName }, bearer(token))],
        ['admin', await postUser(app, { email: freshEmail(), firstName, lastName })],
        ['admin change', await updateUser(app, id, { firstName, lastName })],
      ] as const) {
        t.equal(response.statusCode, 400, way)
        t.strictSame(response.json(), body, way)
      }
      t.match(await importLine({ email: freshEmail(), firstName, lastName }), { status: 'failed', ...body })
    }
    for (const name of NAMES) {
      const renamed = await call(app, 'PUT', '/account', { firstName: name, lastName: name }, bearer(token))
      t.match(renamed.json(), { firstName: name, lastName: name })
    }
  })
})
