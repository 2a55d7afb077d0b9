/** Mails that cannot be sent (docs/design.md, "Account life cycle"). */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { DeliveryQueue } from '#core/mail/delivery-queue'
import type { Context } from '../support/build.ts'
import { createMailer, mailLog, recipient, startSmtp } from '../support/smtp.ts'

const TOKEN = 'canary-token_9f3ac1d0'
const ANN = 'canary@example.com'
const SOON = { firstDelay: 1, maxDelay: 1 }

/** A server's response, which includes the address. */
const rejection = (responseCode: number): Error =>
  Object.assign(new Error(`5.1.1 <${ANN}> ${TOKEN}`), { responseCode })

/** Accepts connections and sends nothing. */
const startSilent = async (t: Context) => {
  const sockets = new Set<Socket>()
  const server = createServer(socket => void sockets.add(socket.on('error', () => undefined))).listen(
    0,
    '127.0.0.1',
  )
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`, server, sockets }
}

t.test('a deferred mail is sent again as the same message', async t => {
  let attempts = 0
  const ids: string[] = []
  const smtp = await startSmtp(t, {
    onRcptTo(_address, _session, done) {
      attempts += 1
      done(attempts <= 2 ? rejection(450) : null)
    },
  })
  const later = await startSmtp(t, {
    onData(stream, _session, done) {
      let text = ''
      stream.on('data', chunk => {
        text += chunk
      })
      stream.on('end', () => {
        ids.push(/^Message-ID: (.*)$/im.exec(text)?.[1] ?? '')
        done(ids.length === 1 ? rejection(451) : null)
      })
    },
  })
  for (const { url } of [smtp, later]) {
    const { mailer, log } = createMailer(t, url, { limits: SOON })
    mailer.send('passwordReset', recipient(ANN), { token: TOKEN })
    await log.until(/^info mails can be sent again/)
    t.equal(log.lines.length, 2, 'one line when it begins, one when it is over')
    t.match(log.lines[0], /^warn mails cannot be sent and are retried: 45[01] (5\.1\.1 )?to (RCPT TO|DATA)$/)
    t.notMatch(log.lines.join(), /canary/)
  }
  t.equal(attempts, 3)
  t.equal(smtp.mails.length, 1)
  t.equal(ids.length, 2)
  t.equal(ids[0], ids[1])
})

t.test('mails wait while the server is down', async t => {
  const before = await startSmtp(t)
  await before.stop()
  const { mailer, log } = createMailer(t, before.url, { limits: SOON })
  mailer.send('verification', recipient(ANN), { token: TOKEN })
  mailer.send('passwordReset', recipient(ANN), { token: TOKEN })
  await log.until(/^warn mails cannot be sent and are retried: connect ECONNREFUSED 127\.0\.0\.1/)
  const after = await startSmtp(t, { port: before.port })
  await after.received(2)
  await mailer.close()
  t.equal(after.mails.length, 2)
  t.notMatch(log.lines.join(), /canary/)
})

t.test('a permanently rejected mail is not sent again', async t => {
  let attempts = 0
  const smtp = await startSmtp(t, {
    onRcptTo({ address }, _session, done) {
      if (address !== ANN) return done()
      attempts += 1
      done(rejection(550))
    },
  })
  const { mailer, log } = createMailer(t, smtp.url, { limits: { ...SOON, concurrency: 1 } })
  mailer.send('verification', recipient(ANN), { token: TOKEN })
  mailer.send('verification', recipient('ben@example.com'), { token: TOKEN })
  await smtp.received(1)
  await mailer.close()
  t.equal(attempts, 1)
  t.same(log.lines, ['error a mail was refused (verification): MailFailure: 550 5.1.1 to RCPT TO'])
})

t.test('mails wait while credentials are rejected; the log has no password', async t => {
  let attempts = 0
  const smtp = await startSmtp(t, {
    allowInsecureAuth: true,
    onAuth({ username, password }, _session, done) {
      attempts += 1
      if (attempts === 1) return done(new Error(`${username} ${password}`))
      done(null, { user: username })
    },
  })
  const url = smtp.url.replace('//', '//canary-user:canary-password@')
  const { mailer, log } = createMailer(t, url, { limits: SOON })
  mailer.send('accountDeleted', recipient(ANN))
  await smtp.received(1)
  t.match(log.lines[0], /^warn mails cannot be sent and are retried: 535 to AUTH PLAIN$/)
  t.notMatch(log.lines.join(), /canary/)
})

t.test('a mail is dropped when its time is over', async t => {
  const { url } = await startSmtp(t, { onRcptTo: (_address, _session, done) => done(rejection(450)) })
  const { mailer, log } = createMailer(t, url, { limits: { ...SOON, maxAge: 0 } })
  mailer.send('passwordReset', recipient(ANN), { token: TOKEN })
  const line = await log.until(/^error/)
  t.match(line, /^error a mail was dropped after the last attempt \(passwordReset\): MailFailure: 450/)
  t.notMatch(log.lines.join(), /canary/)
})

t.test('retries back off with jitter', async t => {
  const limits = {
    capacity: 9,
    concurrency: 1,
    firstDelay: 1000,
    maxDelay: 5000,
    maxAge: 3_600_000,
    closing: 1000,
  }
  const queue = new DeliveryQueue(limits, mailLog())
  const { setTimeout: start } = globalThis
  const delays: number[] = []
  t.intercept(globalThis, 'setTimeout', {
    value(run: () => void, delay: number) {
      delays.push(delay)
      setImmediate(run)
      return start(() => undefined, 0)
    },
  })
  for (let mail = 0; mail < 2; mail += 1) {
    const { promise, resolve } = Promise.withResolvers<void>()
    let attempts = 0
    queue.add('accountExists', async () => {
      attempts += 1
      if (attempts < 6) throw rejection(450)
      resolve()
    })
    await promise
  }
  const [first, second] = [delays.slice(0, 5), delays.slice(5)]
  for (const own of [first, second])
    for (const [index, base] of [1000, 2000, 4000, 5000, 5000].entries())
      t.ok(
        (own[index] ?? 0) >= 0.75 * base && (own[index] ?? 0) <= 1.25 * base,
        `${own[index]} is about ${base}`,
      )
  t.notSame(first, second)
})

t.test('mails past the bound are dropped and logged', async t => {
  const smtp = await startSmtp(t)
  const { mailer, log } = createMailer(t, smtp.url, { limits: { capacity: 2 } })
  for (let count = 0; count < 3; count += 1) mailer.send('passwordReset', recipient(ANN), { token: TOKEN })
  t.same(log.lines, ['error a mail was dropped (passwordReset): MailFailure: the queue is full (2 mails)'])
  await mailer.close()
  t.equal(smtp.mails.length, 2)
  mailer.send('passwordReset', recipient(ANN), { token: TOKEN })
  t.match(log.lines[1], /a mail was dropped \(passwordReset\): MailFailure: the service is shutting down/)
})

t.test('closing is bounded in time and logs what was not sent', async t => {
  const { url, server, sockets } = await startSilent(t)
  const { mailer, log } = createMailer(t, url, { closing: 200, limits: { concurrency: 2 } })
  for (let count = 0; count < 5; count += 1) mailer.send('passwordReset', recipient(ANN), { token: TOKEN })
  await once(server, 'connection')
  const began = performance.now()
  await mailer.close()
  t.ok(performance.now() - began < 3_000)
  t.same(log.lines, ['error mails not sent: 5: MailFailure: the service is shutting down'])
  await Promise.all([...sockets].map(socket => socket.closed || once(socket.resume(), 'close')))
  t.equal(log.lines.length, 1, 'what is cut off is not reported once more')
})

t.test('sending starts after the caller continues, and nothing is logged after close', async t => {
  const log = mailLog()
  const limits = { capacity: 9, concurrency: 1, firstDelay: 1, maxDelay: 1, maxAge: 60_000, closing: 1 }
  const queue = new DeliveryQueue(limits, log)
  const inFlight = Promise.withResolvers<void>()
  let begun = false
  queue.add('accountExists', () => {
    begun = true
    return inFlight.promise
  })
  t.notOk(begun)
  await queue.close(() => inFlight.reject(rejection(450)))
  t.ok(begun)
  await t.rejects(inFlight.promise)
  await new Promise(setImmediate)
  t.same(log.lines, ['error mails not sent: 1: MailFailure: the service is shutting down'])
})

t.test('waiting mails get their retry when the service stops', async t => {
  const before = await startSmtp(t)
  await before.stop()
  const { mailer, log } = createMailer(t, before.url)
  mailer.send('verification', recipient(ANN), { token: TOKEN })
  await log.until(/^warn/)
  const after = await startSmtp(t, { port: before.port })
  await mailer.close()
  t.equal(after.mails.length, 1)

  const { mailer: vain, log: said } = createMailer(t, before.url)
  await after.stop()
  vain.send('verification', recipient(ANN), { token: TOKEN })
  await said.until(/^warn/)
  await vain.close()
  t.same(said.lines.slice(1), ['error mails not sent: 1: MailFailure: the service is shutting down'])
})

t.test('waiting mails do not keep a process alive', async t => {
  const { url } = await startSilent(t)
  const script = `
    import { ACCOUNT_MAILS } from './src/core/accounts/mails.ts'
    import { Mailer } from './src/core/mail/mailer.ts'
    setTimeout(() => process.exit(1), 4_000).unref()
    const mailer = (url, closing) => new Mailer(ACCOUNT_MAILS, {
      mail: { url, from: 'a@example.com', folder: '' }, publicUrl: 'http://x', webUrl: 'http://x', accountUrl: 'http://x', productName: 'x', closing,
      log: { info() {}, warn() {}, error(_context, message) { console.log(message) } },
    })
    mailer('smtp://127.0.0.1:1', 100).send('accountDeleted', { email: 'a@example.com', locale: null })
    const silent = mailer('${url}', 100)
    silent.send('accountDeleted', { email: 'a@example.com', locale: null })
    setTimeout(() => silent.close(), 300)`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: join(import.meta.dirname, '..', '..'),
    encoding: 'utf8',
    timeout: 60_000,
  })
  t.equal(status, 0)
  t.equal(stdout, 'mails not sent: 1\n')
})
