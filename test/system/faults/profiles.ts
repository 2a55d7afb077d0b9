/** Users who change their profiles continuously, and their acknowledged values. */
import { createClient } from '../crash/client.ts'

export interface Profile {
  readonly token: string
  acknowledged: string
  /** Sent later without acknowledgement: any of them may be stored instead. */
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
      if (status !== 201) throw new Error(`sign-up returned ${status}`)
      return {
        token: body?.accessToken as string,
        acknowledged: 'New',
        pending: [],
        sentAt: 0,
      }
    }),
  )
}

/** The same users, with only what `profiles` records about them. */
export const copyProfiles = (profiles: readonly Profile[]): Profile[] =>
  profiles.map(profile => ({ ...profile, pending: [] }))

export interface Changes {
  /** Number of responses by status; 0 stands for none. */
  readonly statuses: ReadonlyMap<number, number>
  /** Ends the load; resolves when no request is in flight. */
  stop(): Promise<void>
}

/** Milliseconds that a user waits after a rejection. */
const PAUSE = 10

/** Every user changes the first name repeatedly, one call at a time. */
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

/** Reads each name. @returns descriptions of those that differ from the acknowledged one. */
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
