/** The logger: serializers, and standard output as a destination that never blocks. */
import { constants, fstatSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import { isatty } from 'node:tty'
import { isMainThread, threadId } from 'node:worker_threads'
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import { clientAddress } from '#http/ip-address'
import type { Config } from '../config/config.ts'
import { LogOutput } from './log-output.ts'

const STANDARD_OUTPUT = 1

/** Logs type, message, code and stack only: other properties may contain what a client sent. */
const serializeError = (error: unknown): unknown => {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) }
  const { type, message, stack } = stdSerializers.err(error)
  return { type, message, stack, ...('code' in error && { code: error.code }) }
}

interface LoggedRequest {
  readonly method: string
  readonly routeOptions: { readonly url?: string | undefined }
  readonly ip: string | undefined
}

/** Logs the route instead of the URL, which may contain tokens from mailed links. */
const serializeRequest = ({ method, routeOptions, ip }: LoggedRequest): unknown => ({
  method,
  route: routeOptions.url ?? null,
  ip: clientAddress(ip),
})

export const logSerializers = { err: serializeError, req: serializeRequest }

const NON_BLOCKING = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * Opens standard output so that writes do not block; a process cannot exit while a thread is blocked in a write. Other
 * processes (a shell, npm, other programs of a pipeline) share the file description and can make it blocking again, so pipes and
 * terminals are reopened where the system allows it.
 */
const openStandardOutput = (): number => {
  const output = fstatSync(STANDARD_OUTPUT)
  if (output.isFIFO() || isatty(STANDARD_OUTPUT)) {
    try {
      return openSync(`/proc/self/fd/${STANDARD_OUTPUT}`, NON_BLOCKING)
    } catch {
      // Not Linux, or the pipe or terminal belongs to another user.
    }
  }
  // Reading this property makes the descriptor non-blocking.
  if (output.isFIFO() || output.isSocket()) void process.stdout
  return STANDARD_OUTPUT
}

const countLine = (dropped: number): string => {
  let line = ''
  const logger = pino(
    {},
    {
      write(text) {
        line = text
      },
    },
  )
  logger.warn({ dropped }, `${dropped} log lines were dropped: standard output was full, closed or not read`)
  return line
}

/** Lines for people. Loaded for a terminal only, as CommonJS, because the first line may be logged before anything is awaited. */
const prettyFormat = (): ((line: string) => string) => {
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty')
  return prettyFactory({ singleLine: true, ignore: 'pid,hostname' })
}

let output: LogOutput | null = null

/** Standard output as JSON lines, or as formatted lines on a terminal. One for the whole process. */
export const standardOutput = (): LogOutput => {
  output ??= new LogOutput({
    open: openStandardOutput,
    countLine,
    ...(isatty(STANDARD_OUTPUT) && { format: prettyFormat() }),
  })
  return output
}

/** The id of a worker thread, which has no process id of its own. */
const worker = isMainThread ? {} : { worker: threadId }

/** @param stream the destination, by default standard output. */
export const createLogger = ({ logLevel }: Config, stream: DestinationStream = standardOutput()): Logger => {
  const base = { pid: process.pid, hostname: hostname(), ...worker }
  return pino({ level: logLevel, serializers: logSerializers, base }, stream)
}
