/** Random histories of refresh tokens: processes of a client that share one store of credentials, and a thief (docs/oauth.md). */
import type { Random } from './random.ts'

/** What histories refresh at. */
export interface RefreshService {
  readonly instances: number
  /** @returns the next refresh token; `null`: it was refused; `undefined`: there was no response. */
  refresh(instance: number, token: string): Promise<string | null | undefined>
  /** Lets the window pass, in which a token is not replaced. No request waits then. */
  passWindow(): Promise<void> | void
}

const PROCESSES = 4
const STEPS = 24

type Flight = Promise<string | null | undefined> | null

/**
 * One history: processes send what the store of credentials has, keep what they receive, or lose it, or are killed while they wait.
 * @param first refresh token of the grant.
 * @returns what led to a refusal; `null`: nobody was signed out.
 */
export const runHistory = async (
  service: RefreshService,
  random: Random,
  first: string,
): Promise<string | null> => {
  const steps: string[] = []
  const flights: Flight[] = Array(PROCESSES).fill(null)
  let kept = first
  const send = (index: number): void => {
    const instance = random.integer(0, service.instances - 1)
    steps.push(`${index} sends ${kept} to ${instance}`)
    flights[index] = service.refresh(instance, kept)
  }
  /** @returns whether it was refused. */
  const receive = async (index: number): Promise<boolean> => {
    const received = await flights[index]
    flights[index] = null
    const isKept = received !== undefined && random.integer(0, 2) > 0
    steps.push(`${index} ${isKept ? 'keeps' : 'loses'} ${received}`)
    if (isKept && received !== null) kept = received
    return received === null
  }
  for (let step = 0; step < STEPS; step += 1) {
    if (random.integer(0, 5) > 0) {
      const index = random.integer(0, PROCESSES - 1)
      if (flights[index] === null) send(index)
      else if (await receive(index)) return steps.join(', ')
      continue
    }
    for (const index of flights.keys())
      if (flights[index] !== null && (await receive(index))) return steps.join(', ')
    await service.passWindow()
    steps.push('the window passes')
  }
  for (const index of flights.keys())
    if (flights[index] !== null && (await receive(index))) return steps.join(', ')
  return null
}

/** Presentations of a client and a thief together. By chance, one of them alone goes on for so long once in a million times. */
const PRESENTATIONS = 40

/**
 * A thief has a copy of the client's token. Both go on, in random order, with the window between.
 * @returns after how many presentations the theft is found; `null`: it is not.
 */
export const runTheft = async (
  service: RefreshService,
  random: Random,
  first: string,
): Promise<number | null> => {
  const held = { client: first, thief: first }
  for (let count = 1; count <= PRESENTATIONS; count += 1) {
    const who = random.integer(0, 1) === 0 ? 'client' : 'thief'
    const received = await service.refresh(random.integer(0, service.instances - 1), held[who])
    if (received === null) return count
    if (received !== undefined) held[who] = received
    await service.passWindow()
  }
  return null
}
