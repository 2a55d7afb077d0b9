/** What `npm test` takes of tests that `npm run test:complete` runs completely. */

/** Whether this is `npm test`, which sets the variable. */
const isShortRun = process.env.TEST_ENGINES === 'sqlite'

/** The first in `npm test`, the second in `npm run test:complete` and when a file is run alone. */
export const inShortRun = <Value>(short: Value, complete: Value): Value => (isShortRun ? short : complete)

/** The first value of each kind in `npm test`, all values otherwise. */
export const oneOfEach = <Value>(
  values: readonly Value[],
  kindOf: (value: Value) => string,
): readonly Value[] => {
  if (!isShortRun) return values
  const kinds = values.map(kindOf)
  return values.filter((_, index) => kinds.indexOf(kinds[index] as string) === index)
}
