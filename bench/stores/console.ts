/** What the pages of the console read: users, events, last requests, and the whole history of metrics. */
import { DURATIONS } from '#base/statistics/histogram'
import { isPostgres, runAll, series, timeIdOf, withoutIndexes } from './generated-rows.ts'
import { SPAN, signUps, slicesOf } from './generated-users.ts'

const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000

const TYPES = [
  'user.signed-up',
  'email.verified',
  'session.sign-in-throttled',
  'password.changed',
  'password.reset',
]

/** As a busy service has counted them: of each status a histogram, of each method and outcome a number. */
const HISTORY = JSON.stringify({
  counts: Object.fromEntries([
    ...[200, 201, 204, 303, 304, 400, 401, 403, 404, 409, 429, 500, 503].map(status => [
      `http_server_request_duration_seconds{status="${status}"}`,
      [...DURATIONS, 0].map((_, bucket) => 10_000 + bucket),
    ]),
    ...['password', 'passkey', 'email-code', 'google', 'github'].flatMap(method =>
      ['succeeded', 'failed', 'throttled'].map(outcome => [
        `gatehouse_sign_ins_total{method="${method}",outcome="${outcome}"}`,
        1_234,
      ]),
    ),
    ...['succeeded', 'failed'].map(outcome => [`gatehouse_sign_ups_total{outcome="${outcome}"}`, 123]),
  ]),
  gauges: {
    users: 1_000_000,
    ...Object.fromEntries(['hour', 'day', '30 days'].map(span => [`active users{span="${span}"}`, 1_000])),
    gatehouse_webhook_lag_seconds: 1,
  },
})

const historyOf = (resolution: string, length: number, kept: number, now: number): string => {
  const last = Math.floor(now / length) * length
  const at = `${last} - CAST(i AS bigint) * ${length}`
  return `WITH RECURSIVE ${series('numbers', kept / length)}
    INSERT INTO console_history (id, resolution, begins_at, expires_at, data)
    SELECT '${resolution} ' || (${at}), '${resolution}', ${at}, ${at} + ${length + kept}, '${HISTORY}' FROM numbers`
}

/** For an empty store. @param each events of each user. */
export const addConsoleRows = (url: string, users: number, each: number): Promise<void> => {
  const now = Date.now()
  const number = `(CAST(key AS bigint) - 1) * ${each} + i`
  const at = `${now - SPAN} + (${number}) * ${Math.floor(SPAN / (users * each))}`
  const type = `CASE i % ${TYPES.length} ${TYPES.map((each, index) => `WHEN ${index} THEN '${each}'`).join(' ')} END`
  return runAll(url, [
    ...signUps(url, users, now),
    ...withoutIndexes(
      url,
      'events',
      slicesOf(users).map(
        ({ from, size }) => `WITH RECURSIVE ${series('numbers', each)}
          INSERT INTO events (id, at, type, actor_type, actor_id, user_id, ip, details)
          SELECT ${timeIdOf(url, at, number)}, ${at}, ${type}, 'user', id, id, '192.0.2.7', NULL
          FROM users CROSS JOIN numbers WHERE key > ${from} AND key <= ${from + size} ORDER BY key, i`,
      ),
    ),
    `INSERT INTO last_requests (user_key, at)
      SELECT key, ${now} - (CAST(key AS bigint) * 7919 % ${SPAN / 1_000}) * 1000 FROM users WHERE key > 0
      ON CONFLICT (user_key) DO UPDATE SET at = excluded.at`,
    historyOf('minute', MINUTE, DAY, now),
    historyOf('quarter-hour', 15 * MINUTE, DAY, now),
    historyOf('hour', HOUR, 90 * DAY, now),
    historyOf('day', DAY, 90 * DAY, now),
    // As autovacuum does after a while. The service never analyses SQLite.
    ...(isPostgres(url) ? ['ANALYZE'] : []),
  ])
}
