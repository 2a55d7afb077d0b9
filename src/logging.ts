import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from './config.ts'

/** Type, message, code and stack: an error's other properties can hold what a client sent. */
const serializeError = (error: unknown): unknown => {
  if (!(error instanceof Error)) return { type: typeof error }
  const { type, message, stack } = stdSerializers.err(error)
  return { type, message, stack, ...('code' in error && { code: error.code }) }
}

interface LoggedRequest {
  readonly method: string
  readonly url: string
  readonly ip: string
}

/** Without the query, in which a link from a mail carries its token. */
const serializeRequest = ({ method, url, ip }: LoggedRequest): unknown => ({
  method,
  path: url.split('?', 1)[0],
  ip,
})

/** JSON lines on standard output; on a terminal, lines for people. `stream` takes their place. */
export const createLogger = ({ logLevel }: Config, stream?: DestinationStream): Logger => {
  const destination =
    stream ?? (process.stdout.isTTY ? pretty({ sync: true, ignore: 'pid,hostname' }) : pino.destination(1))
  return pino({ level: logLevel, serializers: { err: serializeError, req: serializeRequest } }, destination)
}
