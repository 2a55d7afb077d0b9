/**
 * A service that verifies: verifies its tokens again and again, and keeps when it accepted each one for the last time. Started by
 * `verifier-histories.ts`, which sends tokens and asks for the times.
 */
import { pathToFileURL } from 'node:url'

const { ADMIN_KEY = '', BASE_URL = '', VERIFIER = '' } = process.env
const { createVerifier } = await import(pathToFileURL(VERIFIER).href)
const verifier = createVerifier({ baseUrl: BASE_URL, adminKey: ADMIN_KEY })

/** Tokens in one round. */
const WIDTH = 50

/** In milliseconds of the machine's monotonic clock; 0: never. */
const acceptedAt = new Map<string, number>()
let verifications = 0

/** The clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6

const verify = async (token: string): Promise<void> => {
  verifications += 1
  const identity = await verifier.verify(token).catch(() => null)
  if (identity !== null) acceptedAt.set(token, now())
}

process.on(
  'message',
  (message: { readonly add?: readonly string[]; readonly remove?: readonly string[] }) => {
    for (const token of message.add ?? []) acceptedAt.set(token, 0)
    if (message.remove === undefined) return
    const times = message.remove.map(token => acceptedAt.get(token) ?? 0)
    for (const token of message.remove) acceptedAt.delete(token)
    process.send?.({ times, verifications, statistics: verifier.statistics })
  },
)
process.on('disconnect', () => process.exit())

for (;;) {
  const tokens = [...acceptedAt.keys()]
  for (let start = 0; start < tokens.length; start += WIDTH) {
    await Promise.all(tokens.slice(start, start + WIDTH).map(verify))
    await new Promise(resolve => setTimeout(resolve, 2))
  }
  await new Promise(resolve => setTimeout(resolve, 1))
}
