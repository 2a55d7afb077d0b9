import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from './config.ts'

/** Type, message, code and stack: an error's other properties can hold what a client sent. */
const serializeError = (error: unknown): unknown => {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) }
  const { type, message, stack } = stdSerializers.err(error)
  return { type, message, stack, ...('code' in error && { code: error.code }) }
}

interface LoggedRequest {
  readonly method: string
  readonly routeOptions: { readonly url?: string | undefined }
  readonly ip: string
}

/** The route and not the URL, in which a client may put anything and a link from a mail carries its token. */
const serializeRequest = ({ method, routeOptions, ip }: LoggedRequest): unknown => ({
  method,
  route: routeOptions.url ?? null,
  ip,
})

/** Bytes of log lines that may wait for a reader of standard output who is slow; what comes on top is dropped. */
const MAX_WAITING = 4 * 1_048_576

/** Not synchronous: a log collector that stops reading its pipe would hold up the event loop with it. Flushed at exit. */
const standardOutput = (): DestinationStream =>
  process.stdout.isTTY
    ? pretty({ sync: true, singleLine: true, ignore: 'pid,hostname' })
    : pino.destination({ dest: 1, sync: false, maxLength: MAX_WAITING })

/** JSON lines on standard output; on a terminal, lines for people. `stream` takes their place. */
export const createLogger = ({ logLevel }: Config, stream: DestinationStream = standardOutput()): Logger =>
  pino({ level: logLevel, serializers: { err: serializeError, req: serializeRequest } }, stream)
