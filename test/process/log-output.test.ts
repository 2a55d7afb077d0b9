/** Standard output is full, closed or unread: requests are served, and the process stops in the usual time. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/build.ts'
import { pipelined, type Running, startWithOutput } from '../support/process.ts'
import { until } from '../support/until.ts'

t.jobs = 2

/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 60_000

/** Milliseconds in which a process without requests in flight stops, on a slow machine too. */
const STOP_LIMIT = 8_000

/** Two lines per request. */
const LOGGED = { env: { LOG_REQUESTS: 'on' } }

const fifo = (t: Test): string => {
  const path = join(temporaryFolder(t), 'log')
  execFileSync('mkfifo', [path])
  return path
}

/** A file descriptor that is closed with the test, unless it was closed before. */
const opened = (t: Test, path: string, flags: number): { fd: number; close(): void } => {
  const fd = openSync(path, flags)
  let isOpen = true
  const close = (): void => {
    if (isOpen) closeSync(fd)
    isOpen = false
  }
  t.teardown(close)
  return { fd, close }
}

/** Both ends of a pipe, opened without waiting for each other. */
const pipe = (t: Test, path = fifo(t)) => {
  const reader = opened(t, path, constants.O_RDONLY | constants.O_NONBLOCK)
  return { reader, writer: opened(t, path, constants.O_WRONLY) }
}

/** Reads until the end. @returns the lines so far. */
const reading = (t: Test, path: string): (() => string[]) => {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const socket = new Socket({ fd, readable: true, writable: false })
  t.teardown(() => socket.destroy())
  let text = ''
  socket.on('data', chunk => {
    text += chunk
  })
  return () => text.split('\n').slice(0, -1)
}

interface Line {
  readonly level: number
  readonly msg: string
  readonly dropped?: number
}

const parsed = (lines: readonly string[]): Line[] => lines.map(line => JSON.parse(line))

const droppedIn = (lines: readonly Line[]): number => lines.reduce((sum, { dropped = 0 }) => sum + dropped, 0)

const servesAndStops = async (t: Test, server: Running, requests = 1_000): Promise<void> => {
  t.equal(await pipelined(server.port, '/health', requests), requests, 'requests are served')
  const begin = performance.now()
  t.equal(await server.stop('SIGTERM'), 0, 'exit code')
  t.ok(performance.now() - begin < STOP_LIMIT, 'in the usual time')
  t.equal(server.output(), '', 'nothing on standard error')
}

t.test('the service runs with standard output on a full disk (ENOSPC)', async t => {
  const full = opened(t, '/dev/full', constants.O_WRONLY)
  await servesAndStops(t, await startWithOutput(t, [full.fd], LOGGED))
})

t.test('the service runs with standard output and error on a full disk', async t => {
  const full = opened(t, '/dev/full', constants.O_WRONLY)
  await servesAndStops(t, await startWithOutput(t, [full.fd, full.fd], LOGGED))
})

t.test('the service runs with an unread pipe', async t => {
  const { writer } = pipe(t)
  // More lines than the pipe and the buffer hold.
  await servesAndStops(t, await startWithOutput(t, [writer.fd], LOGGED), 15_000)
})

t.test('the service runs with unread pipes for both outputs', async t => {
  const { writer } = pipe(t)
  await servesAndStops(t, await startWithOutput(t, [writer.fd, writer.fd], LOGGED))
})

t.test('the service runs with a closed pipe (EPIPE)', async t => {
  const { reader, writer } = pipe(t)
  const server = await startWithOutput(t, [writer.fd], LOGGED)
  reader.close()
  await servesAndStops(t, server)
})

t.test('the service runs with a closed or unread socket', async t => {
  for (const isOpen of [false, true]) {
    const server = await startWithOutput(t, ['pipe'], LOGGED)
    if (!isOpen) server.process.stdout?.destroy()
    await servesAndStops(t, server)
  }
})

t.test('the service runs with standard output closed before the start', async t => {
  await servesAndStops(t, await startWithOutput(t, [openSync('/dev/null', constants.O_RDONLY)], LOGGED))
})

t.test('when a pipe is read again, every line is written or counted, and none is broken', async t => {
  const path = fifo(t)
  const { writer } = pipe(t, path)
  const server = await startWithOutput(t, [writer.fd], LOGGED)
  writer.close()
  const requests = 15_000
  t.equal(await pipelined(server.port, '/health', requests), requests)
  const lines = reading(t, path)
  const all = await until(lines, found => droppedIn(parsed(found)) > 0, DEADLINE)
  const counts = parsed(all).filter(({ dropped }) => dropped !== undefined)
  t.match(counts, [{ level: 40, msg: /dropped/ }], 'one line at the level warn has the number')
  const isOfRequest = ({ msg }: Line) => msg === 'incoming request' || msg === 'request completed'
  // And those of the requests that waited until the service was ready.
  const isWhole = (found: string[]) =>
    parsed(found).filter(isOfRequest).length + droppedIn(parsed(found)) >= 2 * requests
  t.ok(isWhole(await until(lines, isWhole, DEADLINE)), 'those that are not there were counted')

  t.equal(await pipelined(server.port, '/health', 1), 1)
  t.equal(await server.stop('SIGTERM'), 0)
  await until(lines, found => parsed(found).at(-1)?.msg === 'stopped', DEADLINE)
  const last = parsed(lines())
  t.equal(last.at(-1)?.msg, 'stopped', 'the last line is written before the process ends')
  t.equal(
    last.filter(({ dropped }) => dropped !== undefined).length,
    counts.length,
    'and no more were dropped',
  )
})

t.test('a new reader of a pipe gets the count, then lines as before', async t => {
  const path = fifo(t)
  const { reader, writer } = pipe(t, path)
  const server = await startWithOutput(t, [writer.fd], LOGGED)
  reader.close()
  t.equal(await pipelined(server.port, '/health', 100), 100)
  const lines = reading(t, path)
  const found = await until(lines, found => droppedIn(parsed(found)) > 0, DEADLINE)
  t.ok(droppedIn(parsed(found)) > 0, 'those that met no reader were counted')
  const before = lines().length
  t.equal(await pipelined(server.port, '/health', 1), 1)
  t.ok((await until(lines, found => found.length >= before + 2, DEADLINE)).length >= before + 2)
  t.equal(await server.stop('SIGTERM'), 0)
})
