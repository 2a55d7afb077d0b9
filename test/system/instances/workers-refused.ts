/** Configurations that `WORKERS=2` rejects: the first process exits and logs the reason. */
import { once } from 'node:events'
import { ADMIN_KEY, JWT_SECRET } from '../../support/build.ts'
import { spawnServer } from '../../support/process.ts'
import { freePort } from './instance.ts'
import type { Part } from './part.ts'
import type { Report } from './report.ts'

/** Milliseconds until a start that neither succeeds nor fails is ended. */
const START_LIMIT = 10_000

/** Errors that an operator can fix have no stack. */
const isSentence = (text: string, part: RegExp): boolean => part.test(text) && !/^\s+at /m.test(text)

const rejected = async (env: Record<string, string>): Promise<{ code: number | null; text: string }> => {
  const child = spawnServer({ ADMIN_KEY, JWT_SECRET, PORT: String(await freePort()), WORKERS: '2', ...env })
  let text = ''
  child.stderr?.on('data', chunk => {
    text += chunk
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), START_LIMIT)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  return { code, text }
}

export const reject = async ({ databaseUrl }: Part, report: Report): Promise<void> => {
  const unknown = new URL(databaseUrl)
  unknown.port = String(await freePort())
  const otherUser = new URL(databaseUrl)
  otherUser.password = 'wrong'
  for (const [what, { href }] of Object.entries({
    'no database there': unknown,
    'a wrong password': otherUser,
  })) {
    const { code, text } = await rejected({ DATABASE_URL: href })
    report.figure(what, `${code}: ${text.trim().split('\n')[0]}`)
    report.expect(
      code === 1 && isSentence(text, /Gatehouse cannot start/),
      `${what}: ended with ${code}: ${text}`,
    )
  }
}
