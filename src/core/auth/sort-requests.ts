import { setImmediate as nextTurn } from 'node:timers/promises'

/** Numbers after which other events have their turn: less than a millisecond. */
const SLICE = 65_536

/** Values of a digit. Two digits order four million keys, and the counts of one fit into the processor's first cache. */
const VALUES = 2_048

const PAIR = 2

/** One pass of the radix sort, in the order of one digit. Pairs with the same digit keep their order. @param unit what the digit counts. */
const sortByDigit = async (from: Float64Array, to: Float64Array, unit: number): Promise<void> => {
  // A bitwise operator cuts off the fraction, and the bits of a key above 32.
  const digitAt = (index: number): number => ((from[index] as number) / unit) & (VALUES - 1)
  const ends = new Float64Array(VALUES)
  for (let index = 0; index < from.length; index += PAIR) {
    const digit = digitAt(index)
    ends[digit] = (ends[digit] as number) + PAIR
    if (index % SLICE === SLICE - PAIR) await nextTurn()
  }
  for (let digit = 1; digit < VALUES; digit += 1)
    ends[digit] = (ends[digit] as number) + (ends[digit - 1] as number)
  for (let index = from.length - PAIR; index >= 0; index -= PAIR) {
    const digit = digitAt(index)
    const position = (ends[digit] as number) - PAIR
    ends[digit] = position
    to[position] = from[index] as number
    to[position + 1] = from[index + 1] as number
    if (index % SLICE === SLICE - PAIR) await nextTurn()
  }
}

/** Keeps the newest timestamp of each key. @param pairs sorted by key; they are overwritten. */
const mergeEqualKeys = (pairs: Float64Array): Float64Array => {
  let end = 0
  for (let index = 0; index < pairs.length; index += PAIR) {
    const [key, at] = [pairs[index] as number, pairs[index + 1] as number]
    if (end > 0 && pairs[end - PAIR] === key) {
      pairs[end - 1] = Math.max(pairs[end - 1] as number, at)
    } else {
      pairs[end] = key
      pairs[end + 1] = at
      end += PAIR
    }
  }
  return pairs.subarray(0, end)
}

/**
 * A radix sort of last requests by the keys of their users, in slices, which keeps the newest of each.
 * @param pairs of key (an integer from 0 on) and timestamp, flattened; they are overwritten.
 */
export const sortRequests = async (pairs: Float64Array): Promise<Float64Array> => {
  let largest = 0
  for (let index = 0; index < pairs.length; index += PAIR) largest = Math.max(largest, pairs[index] as number)
  let from = pairs
  let to: Float64Array = new Float64Array(pairs.length)
  for (let unit = 1; unit <= largest; unit *= VALUES) {
    await sortByDigit(from, to, unit)
    ;[from, to] = [to, from]
  }
  return mergeEqualKeys(from)
}
