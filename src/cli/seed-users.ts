/** Users who look like users, for load tests. */
import { newSession, type SessionLimits } from '../auth/session.ts'
import { newId } from '../ids.ts'
import type { SeedAccount } from '../storage/seed.ts'

/** Users of one transaction: some hundred milliseconds at most, for which other writers may have to wait. */
const SLICE = 5_000

/** Milliseconds over which the timestamps of sign-up are spread. */
const YEAR = 365 * 86_400_000

const FIRST_NAMES =
  'Ada Amir Ann Björn Carlos Chloé Dana Elif Emma Grace Hana Ivan Jamal Kenji Łucja Maria Noah Olga Priya Rosa Søren Wei Zoë'.split(
    ' ',
  )

const LAST_NAMES =
  'Abe Ahmed Brown Costa Dubois Eriksson Fischer García Haddad Ito Jones Kaya Keeper Kowalska Lee Martin Novák Okafor'
    .concat(' Olsen Patel Rossi Silva Smith Suzuki Tanaka Tran Wang Weiß Yılmaz')
    .split(' ')

/** As many first names as a prime, and as many last names as another one: every pair of them occurs. */
const nameOf = (names: readonly string[], number: number): string | null =>
  names[number % names.length] ?? null

export interface SeedPlan {
  readonly users: number
  readonly passwordHash: string
  /** What sessions are opened by; `null` opens none. */
  readonly limits: SessionLimits | null
}

/** The later the number, the later the sign-up: ids go up with both, and so are added at the end of every index. */
const account = (number: number, { users, passwordHash, limits }: SeedPlan, now: number): SeedAccount => {
  const createdAt = now - Math.floor((YEAR * (users - number)) / users)
  const user = {
    id: newId(createdAt),
    email: `user${number}@seed.example`,
    passwordHash,
    firstName: nameOf(FIRST_NAMES, number),
    lastName: nameOf(LAST_NAMES, number),
    emailVerified: true,
    disabled: false,
    createdAt,
    updatedAt: createdAt,
  }
  return { user, session: limits && newSession(user.id, now, limits) }
}

/** `user1@seed.example` and so on, a transaction's at a time. */
export const seedAccounts = function* (plan: SeedPlan): Generator<readonly SeedAccount[]> {
  for (let first = 1; first <= plan.users; first += SLICE) {
    const length = Math.min(SLICE, plan.users - first + 1)
    const now = Date.now()
    yield Array.from({ length }, (_, index) => account(first + index, plan, now))
  }
}
