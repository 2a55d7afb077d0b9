/**
 * Tokens that look like API keys (§5.1.3; docs/design.md, "Machine callers"): anonymous, never a failure, and no lookup for those of a
 * wrong form.
 */
import t from 'tap'
import { checksum, createKey, inventedKey } from '../support/api-keys.ts'
import { accountStatus, bearer, cookie, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { hasher: quickHashing })
  const user = await signUp(app)
  const { token } = await createKey(app, user.token)
  const body = token.slice('gate_pat_'.length)
  const [head, tail] = [token.slice(0, -6), token.slice(-6)]
  const flip = (text: string): string =>
    [...text]
      .map(letter => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()))
      .join('')
  const otherLetter = (letter: string | undefined): string => (letter === 'A' ? 'B' : 'A')
  const changedAt = (index: number): string =>
    token.slice(0, index) + otherLetter(token[index]) + token.slice(index + 1)

  /** Not a key by its form: no lookup. */
  const malformed: Record<string, string> = {
    'a wrong checksum': changedAt(token.length - 1),
    'a wrong digit': changedAt(20),
    'the checksum of another key': head + checksum(`${head}x`),
    'the checksum in another case': head + flip(tail),
    'an admin key': `gate_adm_${body}`,
    'an admin key with its checksum': inventedKey('gate_adm_'),
    'another prefix': `gate_pax_${body}`,
    'no prefix': body,
    'a prefix in upper case': `GATE_PAT_${body}`,
    'all in upper case': token.toUpperCase(),
    'all in lower case': token.toLowerCase(),
    'the prefix alone': 'gate_pat_',
    'the prefix twice': `gate_pat_${token}`,
    'a digit cut': token.slice(0, -1),
    'the checksum cut': head,
    'half of it': token.slice(0, 29),
    'a digit more': `${token}A`,
    doubled: token + token,
    'doubled with a space': `${token} ${token}`,
    'a comma behind': `${token},`,
    'quotes around': `"${token}"`,
    '10 kB of digits': `gate_pat_${'A'.repeat(10_000)}`,
    '10 kB behind it': token + 'A'.repeat(10_000),
    'a JWT with the prefix': `gate_pat_${user.token}`,
    'a JWT behind it': `${token}.${user.token}`,
    'latin-1': `gate_pat_${'\u00ff'.repeat(49)}`,
    'an SQL quote': `gate_pat_' OR 1=1 --${'x'.repeat(33)}`,
  }

  t.test('they are anonymous on every route and in every place', async t => {
    t.equal(await accountStatus(app, token), 200)
    const { apiKeys, sessions } = app.services.storage
    const keyLookups = t.capture(apiKeys, 'find', apiKeys.find)
    const sessionLookups = t.capture(sessions, 'find', sessions.find)
    for (const [title, text] of Object.entries(malformed)) {
      for (const headers of [bearer(text), cookie(encodeURIComponent(text)), cookie(text)]) {
        const response = await app.inject({ url: '/account', headers })
        if (response.statusCode !== 401 && response.statusCode !== 400)
          t.fail(`${title}: ${response.statusCode}`)
        const open = await app.inject({ url: '/health', headers })
        if (![200, 400].includes(open.statusCode)) t.fail(`${title}: ${open.statusCode} on a public route`)
      }
    }
    t.equal(keyLookups().length + sessionLookups().length, 0, 'the store is not asked')
    const refused = await app.inject({ url: '/account', headers: bearer(changedAt(20)) })
    t.equal(refused.statusCode, 401)
    t.equal(refused.headers['www-authenticate'], 'Bearer error="invalid_token"')
  })

  t.test('spaces around a key are no part of it, as with every token (RFC 9110 §5.5)', async t => {
    t.equal(await accountStatus(app, `  ${token}  `), await accountStatus(app, ` ${user.token} `))
  })

  t.test('a key with a right checksum that nobody has is anonymous too', async t => {
    const { apiKeys } = app.services.storage
    const lookups = t.capture(apiKeys, 'find', apiKeys.find)
    for (const letter of ['0', 'A', 'z', '-', '%'])
      t.equal(await accountStatus(app, inventedKey('gate_pat_', letter)), 401)
    t.equal(lookups().length, 5, 'each is looked up')
    t.equal(await accountStatus(app, token), 200)
  })

  t.test('x-admin-key accepts no API key', async t => {
    const response = await app.inject({ url: '/admin/users', headers: { 'x-admin-key': token } })
    t.equal(response.statusCode, 401)
  })
})
