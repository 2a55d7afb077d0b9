/** What every load test asks of the service. Runs in Node and in k6, so it imports nothing. */

const START = 'RATE_LIMIT=off ADMIN_KEY=<key> npm start'
const SEED = 'npm run cli -- seed --users 100000 --tokens data/tokens.txt'

/** Without a file of tokens. */
export const missingTokens = file => `${file} cannot be read. Add users and write their tokens: ${SEED}`

const REFUSALS = {
  401: 'ADMIN_KEY is not an admin key of the service',
  403: 'ADMIN_KEY needs the scopes status:read and metrics:read',
}

const parse = body => {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

/**
 * @param {string} url of the service
 * @param {{status: number, body: string}} response of GET /admin/status; status 0 without a response
 * @param {number} tokens how many there are
 * @returns {string | null} why the service must not be measured, and what to do
 */
export const refusalOf = (url, { status, body }, tokens) => {
  const service = parse(body)
  if (status === 0) return `Nothing listens at ${url}: start the service with ${START}`
  if (REFUSALS[status]) return `${url}/admin/status responds with ${status}: ${REFUSALS[status]}`
  if (status !== 200 || service?.service !== 'gatehouse') return `${url} is not a Gatehouse, or an older one`
  if (service.rateLimits) return `The service has rate limits: start it with ${START}`
  // `null` for a key without the scope users:read: the first token is checked all the same.
  if (service.users !== null && service.users < tokens)
    return `The service has ${count(service.users)} users, the file ${count(tokens)} tokens. Use the database of the service: ${SEED}`
  return null
}

/** @returns {string | null} why the tokens cannot be used. @param {number} status of GET /account with one of them */
export const tokenRefusalOf = status =>
  status === 200
    ? null
    : `The service responds to the first token with ${status}. Write the tokens anew, with the environment of the service: ${SEED}`

/** One line about what is measured, to keep with the results. */
export const descriptionOf = ({ version, engine, workers, users, requestLog }) =>
  [
    `Gatehouse ${version}`,
    engine,
    `${workers} ${workers === 1 ? 'worker' : 'workers'}`,
    `${count(users)} users`,
    ...(requestLog ? ['LOG_REQUESTS=on, which costs more than most requests'] : []),
  ].join(', ')

const SERIES = /^http_server_request_duration_seconds_(bucket|sum|count)\{(.*)\} (\S+)$/gm

/** Routes that measure the service. */
const MEASURING = ['/admin/metrics', '/admin/status']

/**
 * What the service has counted since its start.
 * @param {string} metrics the body of GET /admin/metrics
 * @returns {Record<string, {count: number, sum: number, buckets: Record<string, number>}>} by `GET /account 200`
 */
export const requestsIn = metrics => {
  const requests = {}
  for (const [, kind, labels, value] of metrics.matchAll(SERIES)) {
    const { method, route, status, le } = Object.fromEntries(
      [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label, text]),
    )
    if (MEASURING.includes(route)) continue
    const name = `${method} ${route} ${status}`
    requests[name] = requests[name] ?? { count: 0, sum: 0, buckets: {} }
    if (kind === 'bucket') requests[name].buckets[le] = Number(value)
    else requests[name][kind] = Number(value)
  }
  return requests
}

const NONE = { count: 0, sum: 0, buckets: {} }

/** What the service has counted between two readings of {@link requestsIn}. */
export const difference = (before, after) => {
  const requests = {}
  for (const [name, { count, sum, buckets }] of Object.entries(after)) {
    const old = before[name] ?? NONE
    if (count === old.count) continue
    const since = Object.entries(buckets).map(([le, value]) => [le, value - (old.buckets[le] ?? 0)])
    requests[name] = { count: count - old.count, sum: sum - old.sum, buckets: Object.fromEntries(since) }
  }
  return requests
}

export const total = requests => Object.values(requests).reduce((sum, { count }) => sum + count, 0)

/** 100000 → 100,000. k6 has no toLocaleString. */
export const count = number => String(number).replace(/\B(?=(\d{3})+$)/g, ',')

/** The bound of the first bucket that has 99 % of the requests. */
const percentile99 = ({ count, buckets }) => {
  const bounds = Object.keys(buckets).sort((one, other) => bound(one) - bound(other))
  const le = bounds.find(bound => buckets[bound] >= count * 0.99)
  return le === '+Inf' ? `> ${bounds.at(-2) * 1_000} ms` : `≤ ${le * 1_000} ms`
}

const bound = le => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le))

const ROW = [36, 14, 12, 12]

const row = cells =>
  cells.map((cell, index) => (index === 0 ? cell.padEnd(ROW[0]) : cell.padStart(ROW[index]))).join('')

/** The requests that the service has counted, by route and status, with the time that it took for each. */
export const reportOf = requests =>
  [
    row(['counted by the service', 'requests', 'mean', '99 %']),
    ...Object.keys(requests)
      .sort()
      .map(name => {
        const { count: number, sum } = requests[name]
        return row([
          name,
          count(number),
          `${((sum / number) * 1_000).toFixed(3)} ms`,
          percentile99(requests[name]),
        ])
      }),
    row(['total', count(total(requests)), '', '']).trimEnd(),
  ].join('\n')
