/** The accounts of `seed`. */
import { hash } from 'node:crypto'
import { composeId, newId } from '#base/ids'
import { newSession, type SessionLimits } from '#core/auth/session'
import { type SeedAccount, seedEmail } from '#core/store/seed'
import { newFields } from '#core/users/fields'

/** Users per transaction. It takes at most some hundred milliseconds, for which other writers may wait. */
const SLICE = 5_000

/** Milliseconds. Sign-ups are spread over a year. */
const YEAR = 365 * 86_400_000

/** The end of that year with a random seed, so that every run has the same dates; without one it ends now. */
const REFERENCE_TIME = Date.UTC(2026, 0, 1)

const FIRST_NAMES =
  'Ada Amir Ann Björn Carlos Chloé Dana Elif Emma Grace Hana Ivan Jamal Kenji Łucja Maria Noah Olga Priya Rosa Søren Wei Zoë'.split(
    ' ',
  )

const LAST_NAMES =
  'Abe Ahmed Brown Costa Dubois Eriksson Fischer García Haddad Ito Jones Kaya Keeper Kowalska Lee Martin Novák Okafor'
    .concat(' Olsen Patel Rossi Silva Smith Suzuki Tanaka Tran Wang Weiß Yılmaz')
    .split(' ')

/** The numbers of first and last names are different primes, so that every pair occurs. */
const nameOf = (names: readonly string[], number: number): string | null =>
  names[number % names.length] ?? null

export interface SeedPlan {
  readonly users: number
  readonly passwordHash: string
  /** The lifetime of the sessions to open; `null` opens none. */
  readonly limits: SessionLimits | null
  /** What ids follow from; `null`: they differ in every run. */
  readonly randomSeed: number | null
}

/** Ids increase with the number, like the times of sign-up, so that rows are appended at the end of each index. */
const identityOf = (number: number, { users, randomSeed }: SeedPlan, now: number) => {
  const end = randomSeed === null ? now : REFERENCE_TIME
  const createdAt = end - Math.floor((YEAR * (users - number)) / users)
  if (randomSeed === null) return { id: newId(createdAt), createdAt }
  return { id: composeId(createdAt, number, hash('sha256', `${randomSeed} ${number}`, 'buffer')), createdAt }
}

const account = (number: number, plan: SeedPlan, now: number): SeedAccount => {
  const { id, createdAt } = identityOf(number, plan, now)
  const user = {
    id,
    email: seedEmail(number),
    passwordHash: plan.passwordHash,
    ...newFields({ firstName: nameOf(FIRST_NAMES, number), lastName: nameOf(LAST_NAMES, number) }),
    emailVerified: true,
    disabled: false,
    createdAt,
    updatedAt: createdAt,
  }
  return { user, session: plan.limits && newSession(id, now, plan.limits, SEEDED) }
}

/** Sessions of seeded users look like those of users who have signed in with the password. */
const SEEDED = { method: 'password', amr: ['pwd'] } as const

/** Yields `user1@seed.example` and so on, in slices of one transaction. */
export const seedAccounts = function* (plan: SeedPlan): Generator<readonly SeedAccount[]> {
  for (let first = 1; first <= plan.users; first += SLICE) {
    const length = Math.min(SLICE, plan.users - first + 1)
    const now = Date.now()
    yield Array.from({ length }, (_, index) => account(first + index, plan, now))
  }
}
