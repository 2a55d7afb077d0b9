/** Changes of one organization at the same time, also on two instances of one database: exactly one wins (docs/organizations.md). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { confirmedUser, freshEmail, PASSWORD, type SignedUp, updateUser } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { mailbox } from '../support/mailbox.ts'
import { addMember, adminCall, call, organizationOf, team } from '../support/organizations.ts'
import { rounds as allRounds, race } from '../support/races.ts'
import { inShortRun } from '../support/run.ts'
import { select } from '../support/stored-rows.ts'

/** Every order of the two, on every pair of instances; a round is a dozen requests. */
const rounds = process.env.RACE_ROUNDS === undefined ? allRounds.slice(0, inShortRun(8, 12)) : allRounds

interface Row {
  readonly userId: string
  readonly roles: readonly string[]
}

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const DATABASE_URL = await newDatabase(t)
  const options = { env: { DATABASE_URL } }
  const app = await build(t, options)
  const second = await build(t, options)
  const mails = mailbox(app)
  const rival = (round: number): FastifyInstance => (round % 4 < 2 ? app : second)

  const membersOf = async (url: string): Promise<readonly Row[]> =>
    (await adminCall(app, 'GET', `/admin${url}/members`)).json().results ?? []
  const owners = (members: readonly Row[]): number =>
    members.filter(({ roles }) => roles.includes('owner')).length

  const tally = (responses: readonly LightMyRequestResponse[]): string =>
    responses.map(({ statusCode }) => statusCode).join(' ')

  /** No row of a table names what is not there. */
  const assertNoOrphans = async (assert: typeof t): Promise<void> => {
    const orphans = `SELECT id FROM organization_members WHERE organization_id NOT IN (SELECT id FROM organizations)
      OR user_key NOT IN (SELECT key FROM users)
      UNION ALL SELECT id FROM organization_invitations WHERE organization_id NOT IN (SELECT id FROM organizations)`
    assert.strictSame(await select(DATABASE_URL, orphans), [])
  }

  const invite = async (url: string, owner: SignedUp, email: string): Promise<string> => {
    const response = await call(app, owner, 'POST', `${url}/invitations`, { email, roles: ['member'] })
    if (response.statusCode !== 201) throw new Error(response.body)
    return response.json().id
  }
  const accept = (on: FastifyInstance, user: SignedUp, token: string) =>
    call(on, user, 'POST', '/account/invitations/accept', { token })

  t.test('G5: of two acceptances for the last seat one succeeds', async t => {
    for (const round of rounds) {
      const { url, owner } = await team(app)
      const [ben, eve] = [await confirmedUser(app), await confirmedUser(app)]
      await invite(url, owner, ben.email)
      await invite(url, owner, eve.email)
      await adminCall(app, 'PUT', `/admin${url}`, { maxMembers: 4 })
      const tokens = [
        await mails.token(ben.email, 'organizationInvitation'),
        await mails.token(eve.email, 'organizationInvitation'),
      ] as const
      const responses = await race(
        round,
        () => accept(app, ben, tokens[0]),
        () => accept(rival(round), eve, tokens[1]),
      )
      t.strictSame(tally(responses).split(' ').sort(), ['200', '409'], `${round}`)
      t.equal((await membersOf(url)).length, 4)
    }
  })

  t.test('G5: of two owners who leave, or are demoted, at the same time one stays', async t => {
    for (const round of rounds) {
      const { url, owner, admin, member } = await team(app)
      await addMember(app, url.split('/')[2] ?? '', admin.id, ['owner'])
      const leave = (on: FastifyInstance, user: SignedUp) => () =>
        call(on, user, 'DELETE', `${url}/members/${user.id}`)
      const demote = (on: FastifyInstance, by: SignedUp, user: SignedUp) => () =>
        call(on, by, 'PUT', `${url}/members/${user.id}`, { roles: ['member'] })
      const two = rival(round)
      const pairs = [
        [leave(app, owner), leave(two, admin)],
        [demote(app, owner, admin), demote(two, admin, owner)],
        [leave(app, owner), demote(two, owner, admin)],
      ] as const
      const [first, other] = pairs[round % 3] ?? pairs[0]
      const responses = await race(round, first, other)
      const members = await membersOf(url)
      t.equal(owners(members), 1, `${round}: ${tally(responses)}`)
      t.equal(responses.filter(({ statusCode }) => statusCode < 300).length, 1, tally(responses))
      t.ok(
        responses.every(({ statusCode }) => statusCode < 500),
        tally(responses),
      )
      t.ok(members.some(({ userId }) => userId === member.id))
    }
  })

  t.test('an owner who leaves while the only other one is removed: somebody owns it', async t => {
    for (const round of rounds) {
      const { url, owner, admin } = await team(app)
      await addMember(app, url.split('/')[2] ?? '', admin.id, ['owner'])
      const responses = await race(
        round,
        () => call(app, owner, 'DELETE', `${url}/members/${owner.id}`),
        () => adminCall(rival(round), 'DELETE', `/admin/users/${admin.id}`),
      )
      t.equal(owners(await membersOf(url)), 1, `${round}: ${tally(responses)}`)
      t.equal(responses[1]?.statusCode, 204)
      t.ok([204, 409].includes(responses[0]?.statusCode ?? 0))
    }
    await assertNoOrphans(t)
  })

  t.test(
    'two users who delete their accounts, each an owner: one is refused, or none owns nothing',
    async t => {
      for (const round of rounds) {
        const { url, owner, admin, member } = await team(app)
        await addMember(app, url.split('/')[2] ?? '', admin.id, ['owner'])
        const close = (on: FastifyInstance, user: SignedUp) => () =>
          call(on, user, 'DELETE', '/account', { password: PASSWORD })
        const responses = await race(round, close(app, owner), close(rival(round), admin))
        t.strictSame(tally(responses).split(' ').sort(), ['204', '409'], `${round}`)
        const members = await membersOf(url)
        t.equal(owners(members), 1)
        t.ok(members.some(({ userId }) => userId === member.id))
      }
    },
  )

  t.test('an invitation that is accepted twice makes one membership', async t => {
    for (const round of rounds) {
      const { url, owner } = await team(app)
      const ben = await confirmedUser(app)
      await invite(url, owner, ben.email)
      const token = await mails.token(ben.email, 'organizationInvitation')
      const responses = await race(
        round,
        () => accept(app, ben, token),
        () => accept(rival(round), ben, token),
      )
      t.strictSame(tally(responses).split(' ').sort(), ['200', '400'], `${round}`)
      t.equal((await membersOf(url)).length, 4)
    }
  })

  t.test('an acceptance against a revocation, or a replacement: one of them', async t => {
    for (const round of rounds) {
      const { url, owner } = await team(app)
      const ben = await confirmedUser(app)
      const id = await invite(url, owner, ben.email)
      const token = await mails.token(ben.email, 'organizationInvitation')
      const isReplaced = round % 3 === 2
      const [accepted, ended] = await race(
        round,
        () => accept(app, ben, token),
        () =>
          isReplaced
            ? call(rival(round), owner, 'POST', `${url}/invitations`, { email: ben.email, roles: ['member'] })
            : call(rival(round), owner, 'DELETE', `${url}/invitations/${id}`),
      )
      const outcome = `${accepted?.statusCode} ${ended?.statusCode}`
      t.ok((isReplaced ? ['200 409', '400 201'] : ['200 404', '400 204']).includes(outcome), outcome)
      const isMember = (await membersOf(url)).some(({ userId }) => userId === ben.id)
      t.equal(isMember, accepted?.statusCode === 200)
    }
  })

  t.test(
    'an acceptance against a change of the e-mail: only the owner of the address is a member',
    async t => {
      for (const round of rounds) {
        const { url, owner } = await team(app)
        const ben = await confirmedUser(app)
        await invite(url, owner, ben.email)
        const token = await mails.token(ben.email, 'organizationInvitation')
        const [accepted, changed] = await race(
          round,
          () => accept(app, ben, token),
          () => updateUser(rival(round), ben.id, { email: freshEmail() }),
        )
        t.equal(changed?.statusCode, 200)
        t.ok([200, 403].includes(accepted?.statusCode ?? 0), String(accepted?.statusCode))
        const isMember = (await membersOf(url)).some(({ userId }) => userId === ben.id)
        t.equal(isMember, accepted?.statusCode === 200)
      }
    },
  )

  t.test('an acceptance against the removal of the user, or of the organization: no row stays', async t => {
    for (const round of rounds) {
      const { url, owner } = await team(app)
      const ben = await confirmedUser(app)
      await invite(url, owner, ben.email)
      const token = await mails.token(ben.email, 'organizationInvitation')
      const ofUser = round % 2 === 0
      const path = ofUser ? `/admin/users/${ben.id}` : `/admin${url}`
      const [accepted, removed] = await race(
        round >> 1,
        () => accept(app, ben, token),
        () => adminCall(rival(round), 'DELETE', path),
      )
      t.equal(removed?.statusCode, 204)
      t.ok([200, ofUser ? 401 : 400, 400].includes(accepted?.statusCode ?? 0), String(accepted?.statusCode))
      t.notOk((await membersOf(url)).some(({ userId }) => userId === ben.id))
    }
    await assertNoOrphans(t)
  })

  t.test('of two organizations with one slug one is created', async t => {
    const [ann, ben] = [await confirmedUser(app), await confirmedUser(app)]
    for (const round of rounds.slice(0, 8)) {
      const payload = { name: 'Race', slug: `race-${process.pid}-${round}` }
      const responses = await race(
        round,
        () => call(app, ann, 'POST', '/organizations', payload),
        () => call(rival(round), ben, 'POST', '/organizations', payload),
      )
      t.strictSame(tally(responses).split(' ').sort(), ['201', '409'])
    }
  })

  t.test('the limit on created organizations is exact', async t => {
    const ann = await confirmedUser(app)
    for (let each = 0; each < 8; each += 1) await organizationOf(app, ann)
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        call(rival(index), ann, 'POST', '/organizations', { name: `Limit ${index}` }),
      ),
    )
    t.equal(responses.filter(({ statusCode }) => statusCode === 201).length, 2)
  })
})
