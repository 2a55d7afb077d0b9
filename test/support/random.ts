/** Pseudo-random numbers from a seed, so that a failing run can be repeated. */

export interface Random {
  /** A number in [0, 1). */
  next(): number
  /** A whole number from `min` to `max`. */
  integer(min: number, max: number): number
  /** One of the items; `undefined` of none. */
  pick<T>(items: readonly T[]): T | undefined
}

/** mulberry32: 32 bits of state are plenty for timestamps and choices. */
export const createRandom = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    integer: (min, max) => min + Math.floor(next() * (max - min + 1)),
    pick: items => items[Math.floor(next() * items.length)],
  }
}
