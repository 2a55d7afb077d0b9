import { Secret, TOTP, URI } from 'otpauth'
import t from 'tap'
import {
  acceptedStep,
  codeOf,
  fromBase32,
  newTotpSecret,
  stepAt,
  toBase32,
  totpUri,
} from '#features/totp/time-based-codes'
import { createRandom } from '../support/random.ts'

const STEP = 30_000
const random = createRandom(6238)

t.test('codes are those of RFC 6238, appendix B, in their last six digits', async t => {
  const secret = Buffer.from('12345678901234567890')
  for (const [seconds, code] of [
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ] as const)
    t.equal(codeOf(secret, stepAt(seconds * 1_000)), code.slice(2))
})

t.test('codes, secrets and URIs are those of another implementation', async t => {
  for (let round = 0; round < 200; round += 1) {
    const secret = newTotpSecret()
    t.match(secret, /^[A-Z2-7]{32}$/)
    const time = random.integer(0, 4_000_000_000) * 1_000
    const other = new TOTP({ secret: Secret.fromBase32(secret) })
    t.equal(codeOf(fromBase32(secret), stepAt(time)), other.generate({ timestamp: time }))
  }
  const parsed = URI.parse(totpUri('GEZDGNBVGY3TQOJQ', 'Gate & house', 'ann+1@example.com'))
  t.match(parsed, {
    issuer: 'Gate & house',
    label: 'ann+1@example.com',
    algorithm: 'SHA1',
    digits: 6,
    period: 30,
  })
  t.equal(parsed.secret.base32, 'GEZDGNBVGY3TQOJQ')
})

t.test('base32 of every length is read back', async t => {
  for (let length = 0; length <= 20; length += 1) {
    const bytes = Buffer.from(Array.from({ length }, () => random.integer(0, 255)))
    t.strictSame(fromBase32(toBase32(bytes)), bytes)
  }
  t.equal(toBase32(Buffer.from('foobar')), 'MZXW6YTBOI', 'RFC 4648 §10')
  t.throws(() => fromBase32('MZXW6YT!'), { message: 'The text is not base32' })
})

t.test('the code of this step, the one before and the one after are accepted, each once', async t => {
  const secret = newTotpSecret()
  const now = 1_800_000_000_000
  const current = stepAt(now)
  const codeAt = (step: number): string => codeOf(fromBase32(secret), step)
  for (const distance of [-1, 0, 1])
    t.equal(acceptedStep(secret, codeAt(current + distance), now, 0), current + distance)
  for (const distance of [-3, -2, 2, 3])
    t.equal(acceptedStep(secret, codeAt(current + distance), now, 0), null)
  t.equal(acceptedStep(secret, codeAt(current), now, current), null, 'the same step again')
  t.equal(acceptedStep(secret, codeAt(current - 1), now, current), null, 'an earlier one')
  t.equal(acceptedStep(secret, codeAt(current + 1), now, current), current + 1)
  t.equal(acceptedStep(secret, codeAt(current), now + STEP, 0), current, 'in the next step')
  for (const wrong of ['', '00000', '0000000', 'abcdef', `${codeAt(current)}0`])
    t.equal(acceptedStep(secret, wrong, now, 0), null)
})
