/** Races between two requests. */
import { setImmediate } from 'node:timers/promises'
import type { LightMyRequestResponse } from 'fastify'

type Start = () => Promise<LightMyRequestResponse>

const ROUNDS = 100

/** The rounds of each race, as DESIGN §9 asks for. */
export const rounds = Array.from({ length: ROUNDS }, (_, round) => round)

/** Runs both concurrently, in alternating order, the second a few turns of the event loop later. */
export const race = async (round: number, one: Start, two: Start) => {
  const later = async (start: Start) => {
    for (let turns = (round >> 2) % 8; turns > 0; turns -= 1) await setImmediate()
    return start()
  }
  return Promise.all(round % 2 === 0 ? [one(), later(two)] : [later(one), two()])
}
