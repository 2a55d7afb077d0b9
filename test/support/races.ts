/** Races between two requests. */
import { setImmediate } from 'node:timers/promises'
import type { LightMyRequestResponse } from 'fastify'

type Start = () => Promise<LightMyRequestResponse>

/** Which request starts first, on which of two instances, and up to seven turns of the event loop later: each combination once. */
const COMBINATIONS = 32

const ROUNDS = Number(process.env.RACE_ROUNDS ?? COMBINATIONS)

/** The rounds of each race. `RACE_ROUNDS` sets another number, to search for a rare outcome. */
export const rounds = Array.from({ length: ROUNDS }, (_, round) => round)

/** Runs both concurrently, in alternating order, the second a few turns of the event loop later. */
export const race = async (round: number, one: Start, two: Start) => {
  const later = async (start: Start) => {
    for (let turns = (round >> 2) % 8; turns > 0; turns -= 1) await setImmediate()
    return start()
  }
  return Promise.all(round % 2 === 0 ? [one(), later(two)] : [later(one), two()])
}
