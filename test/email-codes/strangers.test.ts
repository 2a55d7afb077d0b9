/** Strangers keep nobody out who has signed in from the network before (docs/design.md, "E-mail codes"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { freshEmail, logCapture, PASSWORD } from '../support/build.ts'
import { codesOf, MAILED_SIGN_INS, otherThan } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { SUBJECT } from '../support/mailbox.ts'
import { execute } from '../support/stored-rows.ts'

const AT_ONCE = 50

/** More than a network may. */
const FEW = 8
const NEW = 'another long pass phrase 8'

const HOME = '2001:db8:0:7::1'
const SAME_HOME = '2001:db8:0:7:ffff::2'
const JOURNEY = '198.51.100.7'
const OFFICE = '198.51.100.8'

/** The address of a stranger, each another one. */
const stranger = (index: number): string => `203.0.113.${index}`

const send = (app: FastifyInstance, ip: string, url: string, payload: object) =>
  app.inject({ method: 'POST', url, payload, remoteAddress: '10.0.0.1', headers: { 'x-forwarded-for': ip } })

const statusesOf = (responses: readonly { readonly statusCode: number }[]): number[] => [
  ...new Set(responses.map(({ statusCode }) => statusCode)),
]

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const env = { ...MAILED_SIGN_INS, TRUST_PROXY: '10.0.0.1', DATABASE_URL: await newDatabase(t) }
  const logs = [logCapture(), logCapture()]
  const apps: FastifyInstance[] = []
  for (const { stream } of logs) apps.push(await build(t, { env, logStream: stream }))
  const [app, other] = apps as [FastifyInstance, FastifyInstance]
  const codes = codesOf(app)

  /** A user who has signed in from three networks. */
  const signUpEverywhere = async () => {
    const email = freshEmail()
    await send(app, HOME, '/account/sign-up', { email, password: PASSWORD })
    for (const ip of [JOURNEY, OFFICE])
      t.equal((await send(app, ip, '/account/sign-in', { email, password: PASSWORD })).statusCode, 200)
    return email
  }

  /** To the instance whose mails are read. */
  const request = (ip: string, url: string, email: string) => send(app, ip, url, { email })

  const enter = (ip: string, email: string, emailCode: string, index = 0) =>
    send(index % 2 === 0 ? app : other, ip, '/account/sign-in/email-code', { email, emailCode })

  /** @param ipOf the address of each of the simultaneous requests. */
  const atOnce = (
    run: (ip: string, index: number) => Promise<{ statusCode: number }>,
    ipOf = stranger,
    count = AT_ONCE,
  ) => Promise.all(Array.from({ length: count }, (_, index) => run(ipOf(index), index)))

  const codeAt = async (ip: string, email: string, count: number): Promise<string> => {
    await request(ip, '/account/email-code', email)
    return codes.newest(email, count)
  }

  /** Each comparison with a code that cannot be decrypted is logged. */
  const breakCodes = () =>
    execute(env.DATABASE_URL, `UPDATE email_codes SET code = 'v1.x.y' WHERE code <> ''`)
  const compared = () =>
    logs.flatMap(log => log.records()).filter(({ msg }) => /decrypted/.test(String(msg))).length

  t.test('D3: a code works on known networks, whatever strangers send meanwhile', async t => {
    for (const ip of [SAME_HOME, JOURNEY]) {
      const email = await signUpEverywhere()
      const code = await codeAt(HOME, email, 1)
      const [guesses, requests] = await Promise.all([
        atOnce((ip, index) => enter(ip, email, otherThan(code, index + 1), index)),
        atOnce(ip => request(ip, '/account/email-code', email)),
      ])
      t.same([statusesOf(guesses), statusesOf(requests)], [[401], [202]])
      await codes.newest(email, 6)
      t.equal((await enter(stranger(0), email, code)).statusCode, 401, 'strangers have used up theirs')
      for (let attempt = 1; attempt <= 4; attempt += 1)
        t.equal((await enter(ip, email, otherThan(code, attempt))).statusCode, 401)
      t.equal((await enter(ip, email, code)).statusCode, 200, `at ${ip}, with five attempts`)
    }
  })

  t.test('D3: strangers on a known network keep nobody out on another one', async t => {
    const email = await signUpEverywhere()
    const code = await codeAt(HOME, email, 1)
    await atOnce(
      (ip, index) => enter(ip, email, otherThan(code, index + 1), index),
      index => (index % 2 === 0 ? stranger(index) : JOURNEY),
    )
    await codeAt(JOURNEY, email, 2)
    t.equal((await enter(JOURNEY, email, code)).statusCode, 401)
    t.equal((await enter(HOME, email, code)).statusCode, 200)
  })

  t.test(
    'D3, F1: a code is compared five times for strangers and each network, fifteen times in all',
    async t => {
      const email = await signUpEverywhere()
      const code = await codeAt(HOME, email, 1)
      await breakCodes()
      const before = compared()
      const counts: number[] = []
      for (const ipOf of [stranger, () => HOME, stranger, () => JOURNEY, () => OFFICE]) {
        await atOnce((ip, index) => enter(ip, email, otherThan(code, index), index), ipOf)
        counts.push(compared() - before)
      }
      t.same(counts, [5, 10, 10, 15, 15])
    },
  )

  t.test(
    'D3, F1: who opens an account with the address of another guesses no more than a stranger',
    async t => {
      const counts = []
      for (const isConfirmed of [0, 1]) {
        const email = await signUpEverywhere()
        await execute(
          env.DATABASE_URL,
          `UPDATE users SET email_verified = ${isConfirmed} WHERE email = '${email}'`,
        )
        const before = compared()
        for (const round of [1, 2]) {
          const asking = [stranger(round), HOME, JOURNEY, OFFICE]
          for (const [index, ip] of asking.entries()) await codeAt(ip, email, 4 * (round - 1) + index + 1)
          await breakCodes()
          await atOnce(
            (ip, index) => enter(ip, email, otherThan('', index), index),
            index => asking[index % 4] as string,
          )
        }
        counts.push(compared() - before)
      }
      const [unconfirmed = 0, confirmed = 0] = counts
      t.ok(unconfirmed > 20 && unconfirmed <= 25, `${unconfirmed} comparisons`)
      t.ok(confirmed > 60, `${confirmed} comparisons`)
    },
  )

  t.test(
    'D3: strangers leave attempts of the hour to a known network before the e-mail is confirmed',
    async t => {
      const email = await signUpEverywhere()
      for (let mail = 1; mail <= 5; mail += 1) {
        const code = await codeAt(stranger(mail), email, mail)
        await atOnce((ip, index) => enter(ip, email, otherThan(code, index + 1), index), stranger, FEW)
      }
      const code = await codeAt(HOME, email, 6)
      for (let attempt = 1; attempt <= 4; attempt += 1)
        t.equal((await enter(HOME, email, otherThan(code, attempt))).statusCode, 401)
      t.equal((await enter(HOME, email, code)).statusCode, 200)
    },
  )

  t.test(
    'D3: a stranger replaces no code or link of a known network, which replaces those of strangers',
    async t => {
      const email = await signUpEverywhere()
      await request(HOME, '/account/magic-link', email)
      const link = await codes.mails.token(email, 'magicLink')
      const foreign = await codeAt(stranger(1), email, 1)
      await request(stranger(2), '/account/magic-link', email)
      await codes.mails.to(email, 'magicLink', 2)
      t.equal((await enter(HOME, email, foreign)).statusCode, 401, 'the next mail of a stranger replaces it')
      const token = { token: link }
      t.equal((await send(app, HOME, '/account/sign-in/magic-link', token)).statusCode, 200)
      const second = await codeAt(stranger(3), email, 2)
      const third = await codeAt(HOME, email, 3)
      t.equal((await enter(HOME, email, second)).statusCode, 401)
      t.equal((await enter(stranger(4), email, third)).statusCode, 200, 'a code works anywhere')
    },
  )

  t.test('D3: an attempt with the correct code is taken back on a known network too', async t => {
    const email = await signUpEverywhere()
    const code = await codeAt(HOME, email, 1)
    for (let attempt = 1; attempt <= 4; attempt += 1) await enter(HOME, email, otherThan(code, attempt))
    await execute(env.DATABASE_URL, `UPDATE users SET disabled = 1 WHERE email = '${email}'`)
    for (let attempt = 1; attempt <= 20; attempt += 1)
      t.equal((await enter(HOME, email, code)).statusCode, 403)
    await execute(env.DATABASE_URL, `UPDATE users SET disabled = 0 WHERE email = '${email}'`)
    t.equal((await enter(HOME, email, code)).statusCode, 200)
  })

  // The last test: it closes the app.
  t.test('D3, R8: strangers use up no mails of known networks, and mails are bounded', async t => {
    const kinds = [
      ['emailCode', '/account/email-code'],
      ['magicLink', '/account/magic-link'],
      ['passwordReset', '/account/forgot-password'],
    ] as const
    const emails = new Map<string, string>()
    for (const [kind, url] of kinds) {
      const email = await signUpEverywhere()
      emails.set(kind, email)
      await atOnce(ip => request(ip, url, email))
      await codes.mails.to(email, kind, 5)
      await atOnce(
        ip => request(ip, url, email),
        index => (index % 2 ? HOME : SAME_HOME),
        FEW,
      )
      await codes.mails.to(email, kind, 10)
      for (const ip of [JOURNEY, OFFICE])
        await atOnce(
          ip => request(ip, url, email),
          () => ip,
          FEW,
        )
      await codes.mails.to(email, kind, 15)
    }
    const reset = await codes.mails.token(emails.get('passwordReset') ?? '', 'passwordReset')
    const changed = await send(app, HOME, '/account/reset-password', { token: reset, password: NEW })
    t.equal(changed.statusCode, 200)
    await other.close()
    for (const [kind, email] of emails) {
      const subjects = await codes.mails.final(email)
      t.equal(subjects.filter(subject => subject === SUBJECT[kind]).length, 15, kind)
    }
  })
})
