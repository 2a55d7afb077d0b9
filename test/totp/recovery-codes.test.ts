import t from 'tap'
import { isRecoveryCode, newRecoveryCodes, recoveryCodeDigest } from '../../src/totp/recovery-codes.ts'

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
