/** The one error body (§7.1): tests hold every answer of 4xx or 5xx against it. */
import type { Test } from 'tap'

export interface Answer {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** What tells this answer from an error of that status in the one shape. Empty when nothing does. */
const faultsOf = (answer: Answer, status: number): string[] => {
  const faults: string[] = []
  const expect = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(fault)
  }
  const { 'content-type': type, 'content-length': length } = answer.headers
  expect(answer.statusCode === status, `status ${answer.statusCode} instead of ${status}`)
  expect(/^application\/json(; ?charset=utf-8)?$/.test(String(type)), `content-type ${type}`)
  expect(length === String(Buffer.byteLength(answer.body)), `content-length ${length}`)
  try {
    const { errors, ...others }: Record<string, Record<string, unknown>> = JSON.parse(answer.body)
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
  return faults.length === 0 ? faults : [...faults, answer.body]
}

type Assert = Pick<Test, 'strictSame'>

/** Passes only for {"errors": {field: [message, …], …}} and nothing else, with its status, media type and length. */
export const errorsOf = (t: Assert, answer: Answer, status: number, title = ''): Record<string, string[]> => {
  const faults = faultsOf(answer, status)
  t.strictSame(faults, [], `${title}: ${status} in the error shape`)
  return faults.length === 0 ? JSON.parse(answer.body).errors : {}
}

/** The same where messages stand under exactly these fields. */
export const errorsAt = (
  t: Assert,
  answer: Answer,
  status: number,
  fields: readonly string[],
  title = fields.join(', '),
): Record<string, string[]> => {
  const faults = faultsOf(answer, status)
  const errors = faults.length === 0 ? JSON.parse(answer.body).errors : {}
  const seen = [...faults, ...Object.keys(errors).sort()]
  t.strictSame(seen, [...fields].sort(), `${title}: ${status} under ${fields.join(', ')}`)
  return errors
}

/** The same for an error with a single message (§7.2), which stands under `global`. @returns the message. */
export const globalErrorOf = (t: Assert, answer: Answer, status: number, title = ''): string =>
  String(errorsAt(t, answer, status, ['global'], title).global ?? '')
