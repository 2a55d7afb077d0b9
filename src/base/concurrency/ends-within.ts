/**
 * Waits for work, but no longer than a limit.
 * @param limit milliseconds.
 * @returns whether the work has ended in time. What becomes of it later is ignored.
 * @throws errors of the work.
 */
export const endsWithin = async (limit: number, work: Promise<unknown>): Promise<boolean> => {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(resolve, limit, false)
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
