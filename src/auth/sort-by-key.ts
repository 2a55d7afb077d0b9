import { setImmediate as nextTurn } from 'node:timers/promises'

/** Items after which other events have their turn: about a millisecond. */
const SLICE = 16_384

/** The values of a digit. Two digits order four million keys, and the counts of one fit into the processor's first cache. */
const VALUES = 2_048

/**
 * Items in the order of their keys, which are integers from 0 on. A radix sort, in slices: 100,000 users take 9 ms of the event loop,
 * mostly to load each from memory. `toSorted` takes eight times as long, in one piece.
 */
export const sortByKey = async <Item extends { readonly key: number }>(
  items: readonly Item[],
): Promise<readonly Item[]> => {
  let largest = 0
  for (const { key } of items) if (key > largest) largest = key
  let [from, to] = [items.slice(), items.slice()]
  const ends = new Float64Array(VALUES)
  for (let unit = 1; unit <= largest; unit *= VALUES) {
    // A bitwise operator cuts off the fraction, and what a key has above 32 bits.
    const digitOf = ({ key }: Item): number => (key / unit) & (VALUES - 1)
    ends.fill(0)
    for (let index = 0; index < from.length; index += 1) {
      const digit = digitOf(from[index] as Item)
      ends[digit] = (ends[digit] as number) + 1
      if (index % SLICE === SLICE - 1) await nextTurn()
    }
    for (let digit = 1; digit < VALUES; digit += 1)
      ends[digit] = (ends[digit] as number) + (ends[digit - 1] as number)
    // From the last one on: items with the same digit keep their order, which the digits before have given them.
    for (let index = from.length - 1; index >= 0; index -= 1) {
      const item = from[index] as Item
      const digit = digitOf(item)
      const position = (ends[digit] as number) - 1
      ends[digit] = position
      to[position] = item
      if (index % SLICE === SLICE - 1) await nextTurn()
    }
    ;[from, to] = [to, from]
  }
  return from
}
