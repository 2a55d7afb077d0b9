/** Random histories of refresh tokens: processes of a client that share one store of credentials, and a thief (docs/oauth.md). */
import type { Random } from './random.ts'

/** What histories refresh at. */
export interface RefreshService {
  readonly instances: number
  /** @returns the next refresh token; `null`: it was refused; `undefined`: there was no response. */
  refresh(instance: number, token: string): Promise<string | null | undefined>
  /** Milliseconds for which a token is not replaced. */
  readonly window: number
  /** Lets the window pass. No request waits then. */
  passWindow(): Promise<void> | void
  /** Milliseconds. */
  clock(): number
}

const PROCESSES = 4
const STEPS = 24

interface Flight {
  readonly response: Promise<string | null | undefined>
  readonly sentAt: number
}

/** How a history ends. `late`: a request took longer than the window, for which nothing is promised. */
type Ending = 'late' | { readonly refused: string } | 'passed'

/**
 * One history: processes send what the store of credentials has, keep what they receive, or lose it, or are killed while they wait.
 * @param first refresh token of the grant.
 */
export const runHistory = async (service: RefreshService, random: Random, first: string): Promise<Ending> => {
  const steps: string[] = []
  const flights: (Flight | null)[] = Array(PROCESSES).fill(null)
  let kept = first
  const send = (index: number): void => {
    const instance = random.integer(0, service.instances - 1)
    steps.push(`${index} sends ${kept} to ${instance}`)
    flights[index] = { response: service.refresh(instance, kept), sentAt: service.clock() }
  }
  /** @returns `null` if the history goes on. */
  const receive = async (index: number): Promise<Ending | null> => {
    const { response, sentAt } = flights[index] ?? {}
    const received = await response
    if (service.clock() - (sentAt ?? 0) >= service.window) return 'late'
    flights[index] = null
    const isKept = received !== undefined && random.integer(0, 2) > 0
    steps.push(`${index} ${isKept ? 'keeps' : 'loses'} ${received}`)
    if (isKept && received !== null) kept = received
    return received === null ? { refused: steps.join(', ') } : null
  }
  const receiveAll = async (): Promise<Ending | null> => {
    for (const index of flights.keys()) {
      const ending = flights[index] === null ? null : await receive(index)
      if (ending !== null) return ending
    }
    return null
  }
  for (let step = 0; step < STEPS; step += 1) {
    const index = random.integer(0, PROCESSES - 1)
    const isOver = random.integer(0, 5) === 0
    if (!isOver && flights[index] === null) {
      send(index)
      continue
    }
    const ending = isOver ? await receiveAll() : await receive(index)
    if (ending !== null) return ending
    if (!isOver) continue
    await service.passWindow()
    steps.push('the window passes')
  }
  return (await receiveAll()) ?? 'passed'
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
