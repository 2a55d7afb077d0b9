/** Cut and stalled connections at random times. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import type { Span } from './instance.ts'
import type { TcpProxy } from './stalling-proxy.ts'

/** Milliseconds between two disruptions, and of a stall. */
const PEACE = { min: 300, max: 1_500 }
const STALL = { min: 300, max: 2_000 }

/** Milliseconds from the beginning of a disruption within which an invalidation may be missed. */
const NEAR = 500

export interface Trouble {
  readonly cuts: () => number
  readonly holds: () => number
  /** Whether an invalidation at this time may be missed: during a stall, or close to a cut. */
  isNear(timestamp: number): boolean
  stop(): Promise<void>
}

export const startDisruptions = (proxy: TcpProxy, random: Random): Trouble => {
  const spans: Span[] = []
  let running = true
  let cuts = 0
  let holds = 0

  const work = async (): Promise<void> => {
    while (running) {
      await sleep(random.integer(PEACE.min, PEACE.max))
      const from = performance.now()
      const span = { from, to: from + NEAR }
      spans.push(span)
      if (random.integer(1, 2) === 1) {
        cuts += 1
        proxy.cut()
        continue
      }
      holds += 1
      proxy.hold()
      await sleep(random.integer(STALL.min, STALL.max))
      // Half of the stalled connections recover, the others never do.
      if (random.integer(1, 2) === 1) proxy.cut()
      proxy.flow()
      span.to = performance.now()
    }
  }
  const end = work()
  return {
    cuts: () => cuts,
    holds: () => holds,
    isNear: timestamp => spans.some(({ from, to }) => from <= timestamp && timestamp <= to),
    async stop() {
      running = false
      await end
    },
  }
}
