import t from 'tap'
import { isRecoveryCode, newRecoveryCodes, recoveryCodeDigest } from '#features/totp/recovery-codes'

t.test('ten codes, each another one', async t => {
  const codes = newRecoveryCodes()
  t.equal(new Set(codes).size, 10)
  for (const code of codes) t.match(code, /^([a-hjkmnp-z2-9]{4}-){5}[a-hjkmnp-z2-9]{4}$/)
})

t.test('a code is recognised as people type it', async t => {
  const [code = ''] = newRecoveryCodes()
  const digest = recoveryCodeDigest(code)
  for (const typed of [code.toUpperCase(), code.replaceAll('-', ''), ` ${code.replaceAll('-', ' ')} `]) {
    t.ok(isRecoveryCode(typed))
    t.equal(recoveryCodeDigest(typed), digest)
  }
  for (const other of ['123456', '', code.slice(1)]) t.notOk(isRecoveryCode(other))
})

t.test('nothing but spaces, hyphens and the case of letters is ignored', async t => {
  const [code = ''] = newRecoveryCodes()
  for (const ignored of ['\t', '\n', '\r', '\u00a0', '\u2003', '\u2010', '\u2028', '\ufeff', '_'])
    t.notOk(isRecoveryCode(code.replace('-', ignored)), encodeURIComponent(ignored))
  t.not(recoveryCodeDigest('\u212a'), recoveryCodeDigest('k'), 'the Kelvin sign, whose lower case is k')
})
