/** Checks that every response must pass. */
import type { Agent } from 'node:http'
import { type Call, Lost, RESPONSE_LIMIT, send, type TimedResponse } from './http.ts'

const isMessages = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(message => typeof message === 'string')

/** `{"errors": {"<field>": ["message", …]}}` and nothing else (docs/design.md, "Errors"). */
const isErrorBody = (text: string): boolean => {
  try {
    const { errors, ...rest } = JSON.parse(text)
    return (
      Object.keys(rest).length === 0 &&
      Object.values(errors).length > 0 &&
      Object.values(errors).every(isMessages)
    )
  } catch {
    return false
  }
}

/** Errors of one response by itself. */
export const errorsIn = ({ status, headers, text, sentAt, respondedAt }: TimedResponse): string[] => {
  const failures: string[] = []
  const isJson = headers['content-type']?.startsWith('application/json') ?? false
  const isWhole = status === 204 ? text === '' : isJson
  if (!isWhole || (status >= 400 && !isErrorBody(text))) failures.push(`${status} with the body ${text}`)
  if (status >= 500 && status !== 503) failures.push(`${status}: ${text}`)
  if (status === 503 && !/^[1-9]\d*$/.test(headers['retry-after'] ?? ''))
    failures.push('503 without Retry-After')
  if (respondedAt - sentAt > RESPONSE_LIMIT)
    failures.push(`${status} after ${Math.round(respondedAt - sentAt)} ms`)
  return failures
}

/** Records all requests of a part. */
export class Journal {
  readonly failures: string[] = []
  readonly statuses = new Map<number, number>()
  responses = 0
  /** Milliseconds of the slowest response. */
  slowest = 0

  /** Records a response. @param where the instance that sent it. */
  response(where: string, { method, path }: Call, response: TimedResponse): void {
    this.responses += 1
    this.statuses.set(response.status, (this.statuses.get(response.status) ?? 0) + 1)
    this.slowest = Math.max(this.slowest, response.respondedAt - response.sentAt)
    for (const failure of errorsIn(response)) this.failures.push(`${where} ${method} ${path}: ${failure}`)
  }

  failure(where: string, { method, path }: Call, what: string): void {
    this.failures.push(`${where} ${method} ${path}: ${what}`)
  }

  count(status: number): number {
    return this.statuses.get(status) ?? 0
  }
}

/** @returns the error if it is a lost response. @throws any other. */
export const asLost = (error: unknown): Lost => {
  if (error instanceof Lost) return error
  throw error
}

/** Sends a request and records the outcome. @returns `null` when the response is lost. */
export const sendRecorded = async (
  { name, url }: { readonly name: string; readonly url: string },
  call: Call,
  agent: Agent,
  journal: Journal,
): Promise<TimedResponse | null> => {
  try {
    const response = await send(url, call, agent)
    journal.response(name, call, response)
    return response
  } catch (error) {
    journal.failure(name, call, `no response: ${asLost(error).message}`)
    return null
  }
}
