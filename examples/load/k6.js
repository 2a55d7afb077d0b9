/**
 * Signed-in users read, list and change accounts; some sign in. Run with `k6 run examples/load/k6.js`, and set `-e PROFILE=account`
 * for `GET /account` alone. The service must have counted exactly the requests that k6 has sent.
 */
import { check } from 'k6'
import { SharedArray } from 'k6/data'
import exec from 'k6/execution'
import http from 'k6/http'
import { Counter } from 'k6/metrics'
import {
  count,
  descriptionOf,
  difference,
  missingTokens,
  refusalOf,
  reportOf,
  requestsIn,
  tokenRefusalOf,
  total,
} from './service.js'

const {
  BASE_URL = 'http://localhost:3000',
  ADMIN_KEY = 'an-admin-key-to-play-with',
  TOKENS = import.meta.resolve('../../data/tokens.txt'),
  PASSWORD = 'seed password 1',
  PROFILE = 'mixed',
  VUS = '50',
  DURATION = '30s',
  SIGN_INS = '10', // a second; each takes about 10 ms of CPU for its hash
} = __ENV

/** Requests of others, which the service also counts. */
const PROBES = / \/(?:health|ready) /

const readTokens = () => {
  try {
    return open(TOKENS)
  } catch {
    throw new Error(missingTokens(TOKENS))
  }
}

/** Line N is the token of account N, and empty if that is disabled. */
const users = new SharedArray('users', () =>
  readTokens()
    .trimEnd()
    .split('\n')
    .map((token, index) => ({ token, email: `user${index + 1}@seed.example` }))
    .filter(({ token }) => token !== ''),
)

const constantVus = run => ({ executor: 'constant-vus', exec: run, vus: Number(VUS), duration: DURATION })

const PROFILES = {
  account: { account: constantVus('readAccount') },
  mixed: {
    mixed: constantVus('default'),
    signIns: {
      executor: 'constant-arrival-rate',
      exec: 'signIn',
      rate: Number(SIGN_INS),
      duration: DURATION,
      preAllocatedVUs: Number(SIGN_INS),
      maxVUs: 10 * Number(SIGN_INS),
    },
  },
}

if (PROFILES[PROFILE] === undefined)
  throw new Error(`PROFILE must be one of ${Object.keys(PROFILES).join(', ')}`)

export const options = {
  scenarios: PROFILES[PROFILE],
  discardResponseBodies: true,
  summaryTrendStats: ['avg', 'med', 'p(95)', 'p(99)', 'max'],
  thresholds: {
    checks: ['rate>0.999'],
    http_req_failed: ['rate<0.001'],
    'http_req_duration{name:GET /account}': ['p(99)<500'],
    'http_req_duration{name:POST /account/sign-in}': ['p(99)<2500'],
    // Without those of setup and teardown.
    'http_reqs{part:load}': ['count>0'],
    uncounted_requests: ['count==0'],
  },
}

/** Requests that k6 has sent, less those that the service has counted. */
const uncounted = new Counter('uncounted_requests')

const getAsText = (path, headers) => http.get(BASE_URL + path, { headers, responseType: 'text' })

const getAsAdmin = path => getAsText(path, { 'x-admin-key': ADMIN_KEY })

const readCounts = () => {
  const counts = requestsIn(getAsAdmin('/admin/metrics').body)
  return Object.fromEntries(Object.entries(counts).filter(([name]) => !PROBES.test(name)))
}

const abortFor = reason => {
  if (reason !== null) exec.test.abort(reason)
}

export function setup() {
  const status = getAsAdmin('/admin/status')
  abortFor(refusalOf(BASE_URL, status, users.length))
  abortFor(tokenRefusalOf(getAsText('/account', bearer(users[0])).status))
  console.log(descriptionOf(status.json()))
  return readCounts()
}

const request = (method, path, body, headers) => {
  uncounted.add(1)
  const name = `${method} ${path.split('?')[0]}`
  const response = http.request(method, BASE_URL + path, body, { headers, tags: { name, part: 'load' } })
  check(response, { 'status is 200': ({ status }) => status === 200 })
}

const bearer = ({ token }) => ({ authorization: `Bearer ${token}` })

const JSON_BODY = { 'content-type': 'application/json' }

const randomUser = () => users[Math.floor(Math.random() * users.length)]

export const readAccount = () => request('GET', '/account', null, bearer(randomUser()))

const listUsers = () => request('GET', '/users?limit=20', null, bearer(randomUser()))

const changeName = () => {
  const body = JSON.stringify({ firstName: `Ann ${Math.floor(Math.random() * 1_000)}` })
  request('PUT', '/account', body, { ...bearer(randomUser()), ...JSON_BODY })
}

export default function () {
  const choice = Math.random()
  if (choice < 0.9) readAccount()
  else if (choice < 0.95) listUsers()
  else changeName()
}

export function signIn() {
  const body = JSON.stringify({ email: randomUser().email, password: PASSWORD })
  request('POST', '/account/sign-in', body, JSON_BODY)
}

export function teardown(before) {
  uncounted.add(-total(difference(before, readCounts())))
}

/** Returns nothing, so that k6 prints its own summary, too. */
export function handleSummary({ metrics, setup_data: before }) {
  if (before === undefined) return
  const counted = difference(before, readCounts())
  for (const line of reportOf(counted).split('\n')) console.log(line)
  const sent = metrics['http_reqs{part:load}'].values.count
  console.log(`k6 has sent ${count(sent)} requests, the service has counted ${count(total(counted))}`)
}
