/** The first step of a sign-in, kept until the second. */

import { createHmac } from 'node:crypto'
import t from 'tap'
import { isOver, isStepOf, newStep } from '#core/accounts/sign-in-steps'

const sealOf = (key: string) => (text: string) => createHmac('sha256', key).update(text).digest()

const SEAL = sealOf('a key of the service')
const NOW = 1_800_000_000_000
const FIRST = { email: 'ann@example.com', passwordHash: '$argon2id$v=19$m=1,t=1,p=1$c2FsdHNhbHQ$aGFzaA' }
const BROWSER = { userAgent: 'Firefox' }

t.test('a step is of one account, password, browser and time', async t => {
  const step = newStep(SEAL, FIRST, BROWSER, NOW)
  t.ok(isStepOf(SEAL, step, FIRST, BROWSER))
  t.notOk(isStepOf(SEAL, step, { ...FIRST, email: 'ben@example.com' }, BROWSER))
  t.notOk(isStepOf(SEAL, step, { ...FIRST, passwordHash: `${FIRST.passwordHash}x` }, BROWSER))
  t.notOk(isStepOf(SEAL, step, { ...FIRST, passwordHash: '' }, BROWSER))
  t.notOk(isStepOf(SEAL, step, FIRST, { userAgent: 'Chrome' }))
  t.notOk(isStepOf(sealOf('another key'), step, FIRST, BROWSER))
  const [expiresAt = '', seal = ''] = step.split('.')
  t.notOk(isStepOf(SEAL, `${Number(expiresAt) + 1}.${seal}`, FIRST, BROWSER), 'a later end')
})

t.test('a step ends after five minutes', async t => {
  const step = newStep(SEAL, FIRST, BROWSER, NOW)
  t.notOk(isOver(step, NOW))
  t.notOk(isOver(step, NOW + 299_999))
  t.ok(isOver(step, NOW + 300_000))
})

t.test('other text is no step', async t => {
  for (const text of [
    '',
    '.',
    'x',
    `${NOW}.`,
    `${NOW + 1}.${'A'.repeat(42)}`,
    `9999999999999.${'A'.repeat(43)}`,
  ]) {
    t.ok(isOver(text, NOW) || !isStepOf(SEAL, text, FIRST, BROWSER), text)
  }
})
