/** Races between two requests. */
import { setImmediate } from 'node:timers/promises'
import type { LightMyRequestResponse } from 'fastify'
import { inShortRun } from './run.ts'

type Start = () => Promise<LightMyRequestResponse>

/** Which request starts first, on which of two instances, and up to seven turns of the event loop later: each combination once. */
const COMBINATIONS = 32

/** Each order on each instance, the second request zero, three and six turns later. */
const SHORT = 12

const ROUNDS = Number(process.env.RACE_ROUNDS ?? inShortRun(SHORT, COMBINATIONS))

/** Turns of the event loop before the second request of a round starts: in the first rounds they are far apart. */
const turnsOf = (round: number): number => ((round >> 2) * 3) % 8

/** The rounds of each race. `RACE_ROUNDS` sets another number, to search for a rare outcome. */
export const rounds = Array.from({ length: ROUNDS }, (_, round) => round)

/** Runs both concurrently, in alternating order, the second a few turns of the event loop later. */
export const race = async (round: number, one: Start, two: Start) => {
  const later = async (start: Start) => {
    for (let turns = turnsOf(round); turns > 0; turns -= 1) await setImmediate()
    return start()
  }
  return Promise.all(round % 2 === 0 ? [one(), later(two)] : [later(one), two()])
}
