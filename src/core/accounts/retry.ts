/** Retries of operations that lose a race against a change of the same account. */
const ATTEMPTS = 3

/**
 * Repeats an operation that a simultaneous change of the same account can invalidate, at most three times.
 * @param operation returns `undefined` where such a change came first. Its parameter counts the attempts from 1.
 * @returns `undefined` after three such changes in a row.
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
