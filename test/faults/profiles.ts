/** Users who change their profiles without pause, and what each of them was told. */
import { createClient } from '../crash/client.ts'

export interface Profile {
  readonly token: string
  acknowledged: string
  /** Sent since, and not acknowledged: any of them may be there instead. */
  pending: string[]
  /** When the last acknowledged change was sent (milliseconds of `performance.now()`). */
  sentAt: number
}

export const signUpProfiles = (url: string, count: number): Promise<Profile[]> => {
  const client = createClient(url)
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const email = `profile-${index}@example.com`
      const { status, body } = await client.signUp(email, 'a rather long pass phrase 7', 'New')
      if (status !== 201) throw new Error(`sign-up answered ${status}`)
      return {
        token: body?.accessToken as string,
        acknowledged: 'New',
        pending: [],
        sentAt: 0,
      }
    }),
  )
}

/** The same users, of whom nothing more is known than what `profiles` says. */
export const copyProfiles = (profiles: readonly Profile[]): Profile[] =>
  profiles.map(profile => ({ ...profile, pending: [] }))

export interface Changes {
  /** How often each status was answered; 0 stands for none. */
  readonly statuses: ReadonlyMap<number, number>
  /** Ends the load; resolves when nothing is under way. */
  stop(): Promise<void>
}

/** Milliseconds that a user who was refused waits. */
const PAUSE = 10

/** Has every user change the first name again and again, one call at a time. */
export const startChanges = (url: string, profiles: readonly Profile[]): Changes => {
  const client = createClient(url)
  const statuses = new Map<number, number>()
  let isRunning = true
  const work = async (profile: Profile): Promise<void> => {
    for (let count = 1; isRunning; count += 1) {
      const name = `${Math.round(performance.now())}-${count}`
      const sentAt = performance.now()
      profile.pending.push(name)
      const status = await client.rename(profile.token, name).then(
        response => response.status,
        () => 0,
      )
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status === 200) {
        profile.acknowledged = name
        profile.pending = []
        profile.sentAt = sentAt
      } else await new Promise(resolve => setTimeout(resolve, PAUSE))
    }
  }
  const workers = profiles.map(work)
  return {
    statuses,
    async stop() {
      isRunning = false
      await Promise.all(workers)
    },
  }
}

/** Asks for each name. @returns those that are not what was acknowledged, in words. */
export const missing = async (url: string, profiles: readonly Profile[]): Promise<string[]> => {
  const client = createClient(url)
  const found = await Promise.all(
    profiles.map(async ({ token, acknowledged, pending }, index) => {
      const { status, body } = await client.account(token)
      const name = body?.firstName as string
      const isThere = status === 200 && (name === acknowledged || pending.includes(name))
      return isThere ? [] : [`user ${index}: ${status}, called ${name}, not ${acknowledged}`]
    }),
  )
  return found.flat()
}
