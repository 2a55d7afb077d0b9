/** DELETE /admin/users/:id (docs/design.md, "Account life cycle"). */
import t from 'tap'
import { createUser, deleteUser, impersonate, postUser, UNKNOWN_ID } from '../support/admin-routes.ts'
import { accountStatus, asAdmin, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import { inShortRun } from '../support/run.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t)
  const mails = mailbox(app)
  const statuses = (responses: { statusCode: number }[]) =>
    responses.map(({ statusCode }) => statusCode).sort()
  const get = (id: string) => app.inject({ url: `/admin/users/${id}`, headers: asAdmin })
  const send = (url: string, payload: Record<string, unknown>) => app.inject({ method: 'POST', url, payload })

  t.test('a deleted user disappears from every route, with sessions and e-mail', async t => {
    const { id, email, token } = await signUp(app)
    const second: string = (await signIn(app, email)).json().accessToken
    await send('/account/forgot-password', { email })
    const mailed = await mails.token(email, 'passwordReset')
    for (const one of [token, second]) t.equal(await accountStatus(app, one), 200)
    const bystander = await signUp(app)
    const response = await deleteUser(app, id)
    t.equal(response.statusCode, 204)
    t.equal(response.body, '')
    for (const one of [token, second]) t.equal(await accountStatus(app, one), 401, 'at once')
    for (const response of [
      await deleteUser(app, id),
      await get(id),
      await updateUser(app, id, { firstName: 'x' }),
      await impersonate(app, id),
      await app.inject({ method: 'DELETE', url: `/admin/users/${id}/sessions`, headers: asAdmin }),
    ])
      globalErrorOf(t, response, 404, `${response.raw.req.method}`)
    for (const url of [`/admin/users?ids=${id}`, `/admin/users?email=${email}`])
      t.strictSame((await app.inject({ url, headers: asAdmin })).json().results, [])
    errorsAt(t, await signIn(app, email), 401, ['credentials'])
    const reset = await send('/account/reset-password', { token: mailed, password: PASSWORD })
    errorsAt(t, reset, 400, ['token'], 'what was mailed')
    const again = await signUp(app, { email })
    t.not(again.id, id, 'the e-mail is free')
    t.equal(await accountStatus(app, token), 401, 'and brings no session back')
    t.equal(await accountStatus(app, bystander.token), 200, 'other users are unaffected')
  })

  t.test(
    'an unknown user is a 404, an invalid id a 400; of ten concurrent deletions one succeeds',
    async t => {
      globalErrorOf(t, await deleteUser(app, UNKNOWN_ID), 404)
      for (const id of ['x', '01890000-0000-7000-8000', 'a%00b'])
        errorsAt(t, await deleteUser(app, id), 400, ['id'], id)
      const { id } = await createUser(app)
      const responses = await Promise.all(Array.from({ length: 10 }, () => deleteUser(app, id)))
      t.strictSame(statuses(responses), [204, ...Array<number>(9).fill(404)])
    },
  )

  t.test('a sign-in concurrent with deletion leaves no valid token', async t => {
    for (let round = 0; round < 5; round += 1) {
      const { id, email } = await signUp(app)
      const before = Array.from({ length: 4 }, () => signIn(app, email))
      for (let turn = 0; turn < round * 4; turn += 1) await new Promise(setImmediate)
      const responses = await Promise.all([deleteUser(app, id), ...before, signIn(app, email)])
      t.equal(responses.shift()?.statusCode, 204)
      for (const response of responses) t.match(String(response.statusCode), /^(200|401)$/, response.body)
      const tokens: string[] = responses.flatMap(response => response.json().accessToken ?? [])
      for (const token of tokens) t.equal(await accountStatus(app, token), 401, `round ${round}`)
    }
  })

  t.test('deletion concurrent with a change: 200 or 404, and the user is gone', async t => {
    const seen = new Set<number>()
    for (let round = 0; round < inShortRun(50, 100); round += 1) {
      const { id, email } = await createUser(app)
      const change = updateUser(app, id, { lastName: `Round ${round}` })
      // The later it is sent, the more often it is processed last.
      for (let turn = 0; turn < round % 25; turn += 1) await new Promise(setImmediate)
      const [changed, deleted] = await Promise.all([change, deleteUser(app, id)])
      t.equal(deleted.statusCode, 204, `round ${round}`)
      t.ok(changed.statusCode === 200 || changed.statusCode === 404, `round ${round}: ${changed.body}`)
      seen.add(changed.statusCode)
      t.equal((await get(id)).statusCode, 404, `round ${round}: gone`)
      t.equal((await postUser(app, { email })).statusCode, 201, `round ${round}: the e-mail is free`)
    }
    t.strictSame([...seen].sort(), [200, 404], 'both orders were met')
  })
})
