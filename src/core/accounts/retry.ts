/** Retries of operations that lose a race against a change of the same account. */
const ATTEMPTS = 3

/**
 * Repeats an operation, at most three times, while it returns `undefined` because a simultaneous change of the same account came first.
 * @param operation gets the number of the attempt, from 1 on.
 */
export const retryOnChange = async <Outcome>(
  operation: (attempt: number) => Promise<Outcome | undefined>,
): Promise<Outcome | undefined> => {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const outcome = await operation(attempt)
    if (outcome !== undefined) return outcome
  }
  return undefined
}
