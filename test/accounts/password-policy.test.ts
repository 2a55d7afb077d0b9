/**
 * The password policy on every route (§9: Passwords; NIST SP 800-63B-4 §3.1.1.2; docs/design.md, "Contract"). Command line:
 * test/cli/commands.test.ts.
 */
import fc from 'fast-check'
import t from 'tap'
import { passwordViolations } from '#core/passwords/policy'
import { call, forgot, reset } from '../support/account-routes.ts'
import { postUser } from '../support/admin-routes.ts'
import { bearer, build, freshEmail, PASSWORD, signIn, signUp } from '../support/build.ts'
import { codePoint } from '../support/code-points.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'

const COMMON = 'is too commonly used: choose another'
const BLANK = 'must have visible characters'
const REPEATED = 'must not repeat a part that is short or easy to guess: add something else'
const PATTERN = 'must not be a sequence or a row of keys, such as abcdefgh or qwertyui: choose another'
const EMAIL = 'must not be the e-mail or the part of it before the @: choose another'
const CURRENT = 'must differ from the current password: choose another'

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  [COMMON]: [
    'password1',
    'PASSWORD1',
    ' password1 ',
    'ｐａｓｓｗｏｒｄ１',
    'pass\u200bword1',
    'qwertyuiop',
    '1q2w3e4r',
  ],
  [REPEATED]: [
    ...[
      '00000000',
      '88888888',
      '12341234',
      'aaaaaaaa',
      'AaAaAaAa',
      ' a'.repeat(4),
      '  aaaaaaaa ',
      '********',
      'kV7#'.repeat(32),
    ],
    ...['🦊🐙'.repeat(64), 'x'.repeat(128), '\u0301'.repeat(8), 'abcabcabcabc', 'password1password1'],
    ...['abcdefghabcdefgh', 'lkjhgfdslkjhgfds'],
    ...['a a a a a a a a', 'abcabcab', '1231231231', 'qwert qwert ', 'password1password1p'],
  ],
  [PATTERN]: [
    ...['87654321', '987654321', 'abcdefgh', 'ABCDEFGH', 'AbCdEfGh', 'acegikmo', 'zyxwvuts', 'абвгдежз'],
    ...[
      '@ABCDEFGH',
      '!"#$%&\'()',
      'lkjhgfdsa',
      'LKJHGFDSA',
      '^&*()_+}',
      'bhjklpoiu',
      'ytrewqasdfgh',
      'poiuztrewq',
    ],
    ...['aoeuidhtns', '74159632'],
  ],
  [BLANK]: [
    ...[' '.repeat(8), '\t \n '.repeat(3), '\u00a0\u2003\u3000'.repeat(3), '\u200b'.repeat(8)],
    ...['\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u180e', '\u3164\uffa0\u115f\u1160'.repeat(2)],
    ...[
      '\u2800'.repeat(9),
      '\u0001\u0002\u007f\u0085\0\0\0\0',
      '\u202a\u202c\u2066\u2069\u200e\u200f\u061c ',
      '\ufe0f '.repeat(6),
    ],
  ],
}

const ACCEPTED: readonly string[] = [
  ...[
    'four hens crossed the moat',
    'kV7#pq2z',
    'kV7#pq2z'.repeat(16),
    'correct horse battery staple',
    '🦊🐙🦉🐢🦔🐝🦀🐬',
  ],
  ...[
    'my password1 is long',
    'abcdefgh!',
    'abcdefghi7abc',
    'qwertyuiop with words',
    '1234567x',
    ' kV7#pq2 ',
    'aaaaaaab',
    'banana banana',
  ],
  ...['٣٧١٩٢٨٤٦', 'پسورد\u200cخوب ۷', '👩‍👩‍👧‍👦 und 🏳️‍🌈'],
]

t.test('the policy checks the whole password, not parts of it', t => {
  for (const [message, passwords] of Object.entries(REFUSED))
    for (const password of passwords)
      t.strictSame(passwordViolations(password, 8, undefined), [message], JSON.stringify(password))
  for (const password of ACCEPTED)
    t.strictSame(passwordViolations(password, 8, undefined), [], JSON.stringify(password))
  t.strictSame(
    passwordViolations('kV7#pq2zkV7#pq2z', 15, undefined),
    [REPEATED],
    'a repeated part needs the length too',
  )
  t.end()
})

t.test('a password equal to the e-mail or its local part is rejected; a longer one is not', t => {
  for (const email of ['balthasar@example.com', ' BALTHASAR@Example.com ']) {
    for (const password of ['balthasar', 'Balthasar', ' BALTHASAR ', 'balthasar@EXAMPLE.com', 'ｂalthasar'])
      t.strictSame(passwordViolations(password, 8, email), [EMAIL], password)
    t.strictSame(passwordViolations('balthasarbalthasar', 8, email), [REPEATED])
    for (const password of ['it is balthasar who came', 'balthasar7', 'example.com', '@example.com'])
      t.strictSame(passwordViolations(password, 8, email), [], password)
  }
  for (const email of [undefined, null, 7, '', '@', 'x'.repeat(16_000)])
    t.strictSame(passwordViolations('kV7#pq2z', 8, email), [])
  t.end()
})

t.test('a repeated short part is rejected, and no input makes the policy throw', t => {
  const short = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 2 })
  t.equal(passwordViolations('\ufdfa'.repeat(8), 8, undefined).length, 1, 'a part of 18 letters in NFKC')
  fc.assert(
    fc.property(short, fc.integer({ min: 8, max: 20 }), (part, count) => {
      const password = part.repeat(count)
      return [...password].length > 128 || passwordViolations(password, 8, undefined).length === 1
    }),
  )
  const any = fc.string({ unit: codePoint, maxLength: 300 })
  fc.assert(fc.property(any, any, (password, email) => passwordViolations(password, 8, email).length <= 1))
  t.end()
})

const app = await build(t, { hasher: quickHashing })
const mails = mailbox(app)

t.test('every route that sets a password applies the same policy', async t => {
  const user = await signUp(app)
  await forgot(app, user.email)
  const token = await mails.token(user.email, 'passwordReset')
  const local = user.email.slice(0, user.email.indexOf('@'))
  const checked: [password: string, message: string][] = Object.entries(REFUSED).flatMap(
    ([message, passwords]) => passwords.slice(-2).map((password): [string, string] => [password, message]),
  )
  for (const [password, message] of [
    ...checked,
    [local.toUpperCase(), EMAIL],
    [user.email, EMAIL],
  ] as const) {
    const email = message === EMAIL ? user.email : freshEmail()
    const change = { currentPassword: PASSWORD, newPassword: password }
    for (const [way, field, response] of [
      ['sign-up', 'password', await call(app, 'POST', '/account/sign-up', { email, password })],
      ['admin', 'password', await postUser(app, { email, password })],
      ['change', 'newPassword', await call(app, 'PUT', '/account/password', change, bearer(user.token))],
      ['reset', 'password', await reset(app, token, password)],
    ] as const) {
      t.equal(response.statusCode, 400, `${way}: ${JSON.stringify(password)}`)
      t.strictSame(response.json(), { errors: { [field]: [message] } })
    }
  }
  t.equal((await signIn(app, user.email)).statusCode, 200)
  for (const password of [`it is ${local} who came`, ...ACCEPTED]) {
    const payload = { email: freshEmail(), password }
    const response = await call(app, 'POST', '/account/sign-up', payload)
    t.equal(response.statusCode, 201, `${password}: ${response.body}`)
  }
  t.equal((await reset(app, token, `it is ${local} who came`)).statusCode, 200, 'the token was not used up')
})

t.test('a new password must differ from the current one, which is checked first', async t => {
  const [composed, decomposed] = ['four h\u00e9ns crossed', 'four he\u0301ns crossed']
  const user = await signUp(app, { password: composed })
  const change = (currentPassword: string, newPassword: string) =>
    call(app, 'PUT', '/account/password', { currentPassword, newPassword }, bearer(user.token))
  for (const newPassword of [composed, decomposed]) {
    const response = await change(composed, newPassword)
    t.equal(response.statusCode, 400)
    t.strictSame(response.json(), { errors: { newPassword: [CURRENT] } })
  }
  const wrong = await change('no hen', 'no hen ever crossed')
  t.strictSame(wrong.json(), { errors: { currentPassword: ['is wrong'] } })
  const guess = await change('no hen ever crossed', 'no hen ever crossed')
  t.strictSame(
    guess.json(),
    { errors: { currentPassword: ['is wrong'] } },
    'equal ones tell nothing of the right one',
  )
  t.equal((await change(composed, composed.toUpperCase())).statusCode, 200, 'letter case counts')
})
