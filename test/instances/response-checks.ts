/** What every answer has to be, whatever it was asked for. */
import { type Call, Lost, RESPONSE_LIMIT, type TimedResponse } from './http.ts'

const isMessages = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(message => typeof message === 'string')

/** `{"errors": {"<field>": ["message", …]}}` and nothing else (DESIGN §3). */
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

/** What is wrong with an answer by itself. */
export const faultsOf = ({ status, headers, text, sentAt, respondedAt }: TimedResponse): string[] => {
  const faults: string[] = []
  const isJson = headers['content-type']?.startsWith('application/json') ?? false
  const isWhole = status === 204 ? text === '' : isJson
  if (!isWhole || (status >= 400 && !isErrorBody(text))) faults.push(`${status} with the body ${text}`)
  if (status >= 500 && status !== 503) faults.push(`${status}: ${text}`)
  if (status === 503 && !/^[1-9]\d*$/.test(headers['retry-after'] ?? ''))
    faults.push('503 without Retry-After')
  if (respondedAt - sentAt > RESPONSE_LIMIT)
    faults.push(`${status} after ${Math.round(respondedAt - sentAt)} ms`)
  return faults
}

/** Keeps account of all requests of a part. */
export class Journal {
  readonly faults: string[] = []
  readonly statuses = new Map<number, number>()
  answered = 0
  /** Milliseconds of the slowest answer. */
  slowest = 0

  /** Notes an answer. @param where which instance gave it. */
  response(where: string, { method, path }: Call, response: TimedResponse): void {
    this.answered += 1
    this.statuses.set(response.status, (this.statuses.get(response.status) ?? 0) + 1)
    this.slowest = Math.max(this.slowest, response.respondedAt - response.sentAt)
    for (const fault of faultsOf(response)) this.faults.push(`${where} ${method} ${path}: ${fault}`)
  }

  fault(where: string, { method, path }: Call, what: string): void {
    this.faults.push(`${where} ${method} ${path}: ${what}`)
  }

  count(status: number): number {
    return this.statuses.get(status) ?? 0
  }
}

/** @returns the error, when it tells of a lost answer. @throws any other. */
export const asLost = (error: unknown): Lost => {
  if (error instanceof Lost) return error
  throw error
}
