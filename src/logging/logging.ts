import { constants, fstatSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import { prettyFactory } from 'pino-pretty'
import type { Config } from '../config/config.ts'
import { clientAddress } from '../http/client-network.ts'
import { LogOutput } from './log-output.ts'

const STANDARD_OUTPUT = 1

/** Type, message, code and stack: an error's other properties can hold what a client sent. */
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

/** The route and not the URL, in which a client may put anything and a link from a mail carries its token. */
const serializeRequest = ({ method, routeOptions, ip }: LoggedRequest): unknown => ({
  method,
  route: routeOptions.url ?? null,
  ip: clientAddress(ip),
})

const NON_BLOCKING = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * Standard output, to which no write waits. A file description may be shared with other processes (a shell, npm, other
 * programs of a pipeline), each of which can make it blocking again: so a pipe and a terminal are opened anew, where the system
 * allows it. A process whose write waits does not end: the thread that makes the write is waited for.
 */
const openStandardOutput = (): number => {
  const output = fstatSync(STANDARD_OUTPUT)
  if (output.isFIFO() || isatty(STANDARD_OUTPUT)) {
    try {
      return openSync(`/proc/self/fd/${STANDARD_OUTPUT}`, NON_BLOCKING)
    } catch {
      // No Linux, or a pipe or a terminal of another user's.
    }
  }
  // To look at it makes it non-blocking.
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

let output: LogOutput | null = null

/** Standard output as JSON lines; on a terminal, as lines for people. One for the whole process. */
export const standardOutput = (): LogOutput => {
  output ??= new LogOutput({
    open: openStandardOutput,
    countLine,
    ...(isatty(STANDARD_OUTPUT) && { format: prettyFactory({ singleLine: true, ignore: 'pid,hostname' }) }),
  })
  return output
}

/** Writes to `stream` in place of standard output. */
export const createLogger = ({ logLevel }: Config, stream: DestinationStream = standardOutput()): Logger =>
  pino({ level: logLevel, serializers: { err: serializeError, req: serializeRequest } }, stream)
