/**
 * Counters in memory are bounded, and strangers choose e-mails: they must not make room for more guesses of codes (docs/design.md, "Second
 * factors").
 */
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import {
  codeSubject,
  emailSubject,
  type LoginSubject,
  StoredLoginThrottle,
  userSubject,
} from '#core/rate-limits/login-throttle'
import { fromLimiter, memoryLimiter } from '#storage/rate-limits'

const KEYS = 100

const LIMITS = { ...RATE_LIMITS.loginThrottle, initialDelay: 600 }

const USER = { id: '0193a1c8-4f10-7000-8000-000000000001', email: 'ann@example.com' } as Parameters<
  typeof codeSubject
>[0]

const wrong = async () => undefined

t.test('attempts on many addresses do not forget those on the codes and the password of a user', async t => {
  const throttle = new StoredLoginThrottle(
    options => fromLimiter(memoryLimiter(options, KEYS)),
    LIMITS,
    { find: async () => null },
    () => undefined,
  )
  const isThrottled = (subject: LoginSubject): Promise<boolean> =>
    throttle.check(subject, wrong).then(
      () => false,
      () => true,
    )
  const subjects = [codeSubject(USER, null), userSubject(USER, null)]
  for (const subject of subjects)
    for (let attempt = 0; attempt <= LIMITS.freeAttempts; attempt += 1)
      t.equal(await isThrottled(subject), false)
  for (let index = 0; index < 10 * KEYS; index += 1)
    await throttle.check(emailSubject(`${index}@example.com`, null), wrong)
  for (const subject of subjects) t.equal(await isThrottled(subject), true)
})
