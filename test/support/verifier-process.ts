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

/** Milliseconds after the last time when a token was accepted, for which it is tried. */
const TRIED = 6_000

/** In milliseconds of the machine's monotonic clock; 0: never accepted. */
const tokens = new Map<string, { readonly addedAt: number; acceptedAt: number }>()
let verifications = 0

/** The clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6

const verify = async (token: string): Promise<void> => {
  verifications += 1
  const identity = await verifier.verify(token).catch(() => null)
  const known = tokens.get(token)
  if (identity !== null && known !== undefined) known.acceptedAt = now()
}

process.on(
  'message',
  (message: { readonly add?: readonly string[]; readonly remove?: readonly string[] }) => {
    for (const token of message.add ?? []) tokens.set(token, { addedAt: now(), acceptedAt: 0 })
    if (message.remove === undefined) return
    const times = message.remove.map(token => tokens.get(token)?.acceptedAt ?? 0)
    process.send?.({ times, verifications, statistics: verifier.statistics })
  },
)
process.on('disconnect', () => process.exit())

for (;;) {
  const since = now() - TRIED
  const tried = [...tokens].filter(([, { addedAt, acceptedAt }]) => Math.max(addedAt, acceptedAt) > since)
  for (let start = 0; start < tried.length; start += WIDTH) {
    await Promise.all(tried.slice(start, start + WIDTH).map(([token]) => verify(token)))
    await new Promise(resolve => setTimeout(resolve, 2))
  }
  await new Promise(resolve => setTimeout(resolve, 1))
}
