/** Users without sessions. */
import { runAll, series, timeIdOf, withoutIndexes } from './generated-rows.ts'

/** Milliseconds: sign-ups lie so far back at most. */
export const SPAN = 60 * 86_400_000

/** Users whom one statement adds. */
const SLICE = 50_000

interface Slice {
  /** The users before it. */
  readonly from: number
  readonly size: number
}

export const slicesOf = (users: number): readonly Slice[] =>
  Array.from({ length: Math.ceil(users / SLICE) }, (_, slice) => ({
    from: slice * SLICE,
    size: Math.min(SLICE, users - slice * SLICE),
  }))

/** Statements for an empty store. @param now milliseconds since the epoch. */
export const signUps = (url: string, users: number, now: number): readonly string[] =>
  slicesOf(users).map(({ from, size }) => {
    const number = `CAST(${from} + i AS bigint)`
    const at = `${now - SPAN} + ${number} * ${Math.floor(SPAN / users)}`
    // Last names in another order than sign-ups.
    const name = `(${number} * 7919 % ${users})`
    return `WITH RECURSIVE ${series('numbers', size)}
      INSERT INTO users (id, email, first_name, first_name_key, last_name, last_name_key,
        email_verified, disabled, created_at, updated_at)
      SELECT ${timeIdOf(url, at, number)}, 'user' || ${number} || '@example.com',
        'First' || ${number}, 'first' || ${number}, 'Last' || ${name}, 'last' || ${name}, 1, 0, ${at}, ${at}
      FROM numbers`
  })

/** For an empty store. */
export const addUsers = (url: string, users: number): Promise<void> =>
  runAll(url, withoutIndexes(url, 'users', signUps(url, users, Date.now())))
