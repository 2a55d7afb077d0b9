/**
 * Which refresh token follows one that was presented. Processes of a client share one store of credentials, any response may be lost, and
 * none of them must be signed out; a thief who refreshes beside the client must be found.
 */

/** The refresh tokens of a grant. A generation is the number of one. */
export interface Generations {
  readonly current: number
  readonly predecessor: number
  /** The highest that was issued: none is issued twice. */
  readonly issued: number
  /** Whether the current one was presented. */
  readonly isPresented: boolean
}

/** The generations of a new grant. */
export const FIRST: Generations = { current: 0, predecessor: -1, issued: 0, isPresented: false }

const successor = ({ issued }: Generations, predecessor: number): Generations => ({
  current: issued + 1,
  predecessor,
  issued: issued + 1,
  isPresented: false,
})

/**
 * @param presented an authentic one.
 * @param isYoung whether the current one was issued within the window.
 * @returns the generations afterwards, of which the current one is the response; `null`: the grant must end.
 */
export const rotated = (state: Generations, presented: number, isYoung: boolean): Generations | null => {
  if (presented === state.current)
    return isYoung ? { ...state, isPresented: true } : successor(state, presented)
  if (presented !== state.predecessor) return null
  if (isYoung) return state
  // Its response was lost: the current one, which nobody has presented, is skipped, and dead from now on.
  return state.isPresented ? null : successor(state, presented)
}
