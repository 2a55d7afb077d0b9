/** Scales and their ticks. */
export interface Scale {
  readonly low: number
  readonly high: number
  /** The position of a value, from 0 to 1; values outside are at the ends. */
  position(value: number): number
  /** Values with a line and a label. */
  readonly ticks: readonly number[]
}

const ROUND = [1, 2, 5]

/** The most decades of which 2 and 5 have ticks too. */
const FEW_DECADES = 2

/** The values 1, 2, 5, 10, … or their multiples, over all that a plot may show. */
const roundValues = (digits: readonly number[]): number[] =>
  Array.from({ length: 13 }, (_, index) => index - 3).flatMap(exponent =>
    digits.map(digit => Number(`${digit}e${exponent}`)),
  )

/** A scale for these positive values, from a round value to a round value. */
export const logScale = (values: readonly number[]): Scale => {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const low = roundValues(ROUND).findLast(value => value <= least) ?? least
  const high = roundValues(ROUND).find(value => value >= most && value > low) ?? most
  const decades = Math.log10(high / low)
  return {
    low,
    high,
    position: value => Math.min(1, Math.max(0, Math.log10(value / low) / decades)),
    ticks: roundValues(decades > FEW_DECADES ? [1] : ROUND).filter(value => value >= low && value <= high),
  }
}

/** Ticks of a scale that begins with 0, at most. */
const LINEAR_TICKS = 4

/** A scale from 0 to a round value. */
export const linearScale = (values: readonly number[]): Scale => {
  const most = Math.max(0, ...values) || 1
  const step = roundValues(ROUND).find(value => value * LINEAR_TICKS >= most) ?? most
  const count = Math.ceil(most / step)
  const high = count * step
  return {
    low: 0,
    high,
    position: value => Math.min(1, Math.max(0, value / high)),
    ticks: Array.from({ length: count + 1 }, (_, index) => index * step),
  }
}

/** A scale of time. @param low and high milliseconds since the epoch. @param step milliseconds between two ticks, which are multiples of it. */
export const timeScale = (low: number, high: number, step: number): Scale => {
  const first = Math.ceil(low / step) * step
  return {
    low,
    high,
    position: value => (high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0),
    ticks: Array.from({ length: Math.floor((high - first) / step) + 1 }, (_, index) => first + index * step),
  }
}
