/** The error body (§7.1). Tests check every 4xx and 5xx response with these functions. */
import type { Test } from 'tap'

export interface HttpResponse {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** @returns how the response differs from an error response with that status; empty if it does not. */
const differences = (response: HttpResponse, status: number): string[] => {
  const found: string[] = []
  const expect = (holds: boolean, difference: string): void => {
    if (!holds) found.push(difference)
  }
  const { 'content-type': type, 'content-length': length } = response.headers
  expect(response.statusCode === status, `status ${response.statusCode} instead of ${status}`)
  expect(/^application\/json(; ?charset=utf-8)?$/.test(String(type)), `content-type ${type}`)
  expect(length === String(Buffer.byteLength(response.body)), `content-length ${length}`)
  try {
    const { errors, ...others }: Record<string, Record<string, unknown>> = JSON.parse(response.body)
    expect(Object.keys(others).length === 0, 'another property than errors')
    const lists = Object.values(errors ?? {})
    expect(lists.length > 0, 'no field')
    for (const list of lists)
      expect(
        Array.isArray(list) && list.length > 0 && list.every(each => typeof each === 'string'),
        'messages',
      )
  } catch {
    expect(false, 'no JSON')
  }
  return found.length === 0 ? found : [...found, response.body]
}

type Assert = Pick<Test, 'strictSame'>

/** Asserts {"errors": {field: [message, …], …}} and nothing else, with its status, media type and length. @returns the errors. */
export const errorsOf = (
  t: Assert,
  response: HttpResponse,
  status: number,
  title = '',
): Record<string, string[]> => {
  const found = differences(response, status)
  t.strictSame(found, [], `${title}: ${status} in the error shape`)
  return found.length === 0 ? JSON.parse(response.body).errors : {}
}

/** Like {@link errorsOf}, with messages for exactly these fields. */
export const errorsAt = (
  t: Assert,
  response: HttpResponse,
  status: number,
  fields: readonly string[],
  title = fields.join(', '),
): Record<string, string[]> => {
  const found = differences(response, status)
  const errors = found.length === 0 ? JSON.parse(response.body).errors : {}
  const seen = [...found, ...Object.keys(errors).sort()]
  t.strictSame(seen, [...fields].sort(), `${title}: ${status} under ${fields.join(', ')}`)
  return errors
}

/** Like {@link errorsAt}, for a single message under `global` (§7.2). @returns the message. */
export const globalErrorOf = (t: Assert, response: HttpResponse, status: number, title = ''): string =>
  String(errorsAt(t, response, status, ['global'], title).global ?? '')
