/** Statistics of samples. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** @param share from 0 to 1. */
export const quantile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

export const spread = (values: readonly number[]): Spread => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
})

/** The slope of the least-squares line through the points. */
export const slope = (points: readonly { readonly x: number; readonly y: number }[]): number => {
  const mean = (pick: (point: { x: number; y: number }) => number): number =>
    points.reduce((sum, point) => sum + pick(point), 0) / points.length
  const [x, y] = [mean(point => point.x), mean(point => point.y)]
  const up = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0)
  return up / points.reduce((sum, point) => sum + (point.x - x) ** 2, 0)
}

/** A random permutation (Fisher–Yates). */
export const shuffled = <Item>(items: readonly Item[]): readonly Item[] => {
  const result = [...items]
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1))
    const item = result[last] as Item
    result[last] = result[other] as Item
    result[other] = item
  }
  return result
}
