/**
 * A small heap and a flood of distinct tokens (docs/design.md, "Hot path"): caches take only a part of the heap, so the service keeps
 * responding for the correct users and keeps every acknowledged write.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { JWT_SECRET, temporaryFolder } from '../../../support/build.ts'
import { spawnScript, startServer } from '../../../support/process.ts'
import { bearer, bodyOf, calls, Lost, send } from '../../instances/http.ts'
import { Report } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'

/** MiB of V8's old generation. Without a bound that follows it, 64 were full after some 28,000 tokens. */
const HEAP = 64

const USERS = 40_000
const CLIENTS = 32

/** Every nth request of a client changes its user's name, which is checked at the end. */
const RENAME_EVERY = 100

const seed = async (databaseFile: string, tokens: string): Promise<void> => {
  const env = { DATABASE_URL: `sqlite:${databaseFile}`, JWT_SECRET }
  const child = spawnScript(['src/cli.ts', 'seed', '--users', String(USERS), '--tokens', tokens], env)
  child.stdout?.resume()
  child.stderr?.resume()
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`the seed ended with ${code}`)
}

const userOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sub

/** The same claims with an invalid signature. */
const forge = (token: string, number: number): string =>
  token.slice(0, token.lastIndexOf('.') + 1) + String(number).padStart(43, 'A')

interface Tally {
  responses: number
  rejected: number
  readonly wrong: string[]
  lost: number
}

export const run = async ({ context }: FaultPart): Promise<Report> => {
  const report = new Report(`A heap of ${HEAP} MiB under distinct tokens`)
  const folder = temporaryFolder(context)
  const databaseFile = join(folder, 'heap.db')
  await seed(databaseFile, join(folder, 'tokens'))
  const tokens = readFileSync(join(folder, 'tokens'), 'utf8').trim().split('\n')
  const env = { NODE_ENV: 'production', NODE_OPTIONS: `--max-old-space-size=${HEAP}` }
  const server = await startServer(context, { databaseFile, env })

  const tally: Tally = { responses: 0, rejected: 0, wrong: [], lost: 0 }
  const names = new Map<string, string>()
  const requests = tokens.flatMap((token, index) =>
    index % 5 === 0 ? [token, forge(token, index)] : [token],
  )
  const queue = requests.values()

  const ask = async (agent: Agent, token: string, count: number): Promise<void> => {
    const isForged = token.includes('AAAAA', token.lastIndexOf('.'))
    const name = !isForged && count % RENAME_EVERY === 0 ? `Name ${count}` : null
    const call =
      name === null
        ? { method: 'GET' as const, path: '/account', headers: bearer(token) }
        : calls.rename(token, name)
    const response = await send(server.url, call, agent)
    if (response.status === 503) {
      tally.rejected += 1
      return
    }
    tally.responses += 1
    if (response.status !== (isForged ? 401 : 200)) tally.wrong.push(`${call.method}: ${response.status}`)
    else if (!isForged && bodyOf(response).id !== userOf(token)) tally.wrong.push("another user's account")
    if (name !== null && response.status === 200) names.set(token, name)
  }
  const client = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    let count = 0
    try {
      for (const token of queue) {
        count += 1
        await ask(agent, token, count)
      }
    } catch (error) {
      if (!(error instanceof Lost)) throw error
      tally.lost += 1
    } finally {
      agent.destroy()
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  report.expect(server.process.exitCode === null, `the process ended with ${server.process.signalCode}`)

  const code = await server.stop('SIGTERM')
  const restarted = await startServer(context, { databaseFile })
  const missing: string[] = []
  for (const [token, name] of names) {
    const response = await send(restarted.url, calls.account(token), false)
    if (bodyOf(response).firstName !== name) missing.push(`a user is not called ${name}`)
  }
  await restarted.stop('SIGTERM')

  report.figure('distinct tokens', requests.length)
  report.figure('responses / rejected with 503', `${tally.responses} / ${tally.rejected}`)
  report.figure('acknowledged changes', names.size)
  report.failures('wrong responses', tally.wrong)
  report.failures('acknowledged changes lost', missing)
  report.expect(tally.lost === 0, `${tally.lost} clients lost their connection`)
  report.expect(code === 0, `the process ended with ${code}`)
  report.expect(names.size > 0, 'nothing was changed')
  return report
}
