/** Contract: e-mail tokens are limited, found while valid, and work once (docs/design.md, "Account life cycle"). */

import { v7 as uuidv7 } from 'uuid'
import {
  EMAIL_TOKEN_POLICIES,
  type EmailToken,
  type EmailTokenPurpose,
  MAIL_WINDOW,
  MAX_MAILS,
  newEmailToken,
} from '#core/accounts/email-token'
import { freshEmail } from '../../support/build.ts'
import {
  actingIn,
  add,
  asStored,
  eventOf,
  NOW,
  newUser,
  type Part,
  proofOf,
  resetBy,
  sessionOf,
  type TestUser,
} from './fixtures.ts'

const LATER = NOW + 1_000
const PURPOSES: readonly EmailTokenPurpose[] = ['verification', 'emailChange', 'passwordReset']
const KEEP = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }
const INVALIDATE = { ...KEEP, invalidateTokens: true }
const END = { ...INVALIDATE, revokeSessions: true }

const tokenOf = (purpose: EmailTokenPurpose, user: { id: string; email: string }, now = NOW): EmailToken =>
  newEmailToken(purpose, user.id, purpose === 'emailChange' ? freshEmail('new') : user.email, now).stored

/** The event of a token, by which tokens are counted. */
const requestOf = ({ userId, createdAt, purpose }: EmailToken) =>
  eventOf(userId, createdAt, EMAIL_TOKEN_POLICIES[purpose].countedBy.at(-1))

export const emailTokens: Part = async (t, open) => {
  const storage = await open(t)
  const keep = (token: EmailToken, sessionId: string | null = null) =>
    storage.emailTokens.add(token, requestOf(token), sessionId)
  /** A user with a token of each purpose. */
  const addWithTokens = async (fields: Partial<TestUser> = {}) => {
    const added = await add(storage, fields)
    const [verification, emailChange, passwordReset] = PURPOSES.map(purpose => tokenOf(purpose, added.user))
    if (!(verification && emailChange && passwordReset)) throw new Error('no tokens')
    const tokens = { verification, emailChange, passwordReset }
    for (const token of Object.values(tokens)) t.equal(await keep(token), 'added')
    return { ...added, tokens }
  }
  const usable = async (tokens: Record<string, EmailToken>) => {
    const found = await Promise.all(
      Object.entries(tokens).map(async ([name, { digest }]) =>
        (await storage.emailTokens.find(digest, NOW)) === undefined ? [] : [name],
      ),
    )
    return found.flat().sort()
  }
  /** With the password of the user, as it is. */
  const confirm = async (token: EmailToken, at = LATER) => {
    const user = await storage.users.find(token.userId)
    const found = user && (await storage.users.findByEmail(user.email))
    const proof = proofOf({ passwordHash: found?.passwordHash ?? '' })
    return storage.emailTokens.confirmEmail(token, eventOf(token.userId, at), proof)
  }
  const reset = (token: EmailToken, newHash = 'new hash', session = sessionOf(token.userId)) =>
    resetBy(storage, token, newHash, session, eventOf(token.userId, LATER))

  t.test('a token is found unchanged until it expires, only by its digest', async t => {
    for (const purpose of PURPOSES) {
      const { user } = await add(storage)
      const token = tokenOf(purpose, user)
      t.equal(await keep(token), 'added')
      t.strictSame(await storage.emailTokens.find(token.digest, NOW), token)
      t.strictSame(await storage.emailTokens.find(token.digest, token.expiresAt - 1), token)
      t.equal(await storage.emailTokens.find(token.digest, token.expiresAt), undefined, 'at its end')
      t.equal(await storage.emailTokens.find(token.digest.toLowerCase(), NOW), undefined)
      t.equal(await storage.emailTokens.find('', NOW), undefined)
    }
  })

  t.test('a token is stored with a new account, or not at all', async t => {
    const user = newUser()
    const token = tokenOf('verification', user)
    t.equal(await storage.accounts.addUser(user, eventOf(user.id), { emailToken: token }), true)
    t.strictSame(await storage.emailTokens.find(token.digest, NOW), token)
    t.strictSame(await storage.sessions.list(user.id, NOW, 0, 10), [], 'and no session')
    const taken = newUser({ email: user.email })
    const none = tokenOf('verification', taken)
    t.equal(await storage.accounts.addUser(taken, eventOf(taken.id), { emailToken: none }), false)
    t.equal(await storage.emailTokens.find(none.digest, NOW), undefined)
  })

  t.test(
    'no token is stored for an unknown or disabled user, a former hash, or an ended session',
    async t => {
      const { user, session } = await add(storage)
      const { user: disabled, session: former } = await add(storage, { disabled: true })
      const change = tokenOf('emailChange', user)
      const rejected = [
        { token: tokenOf('verification', newUser()), acting: null, reason: 'userNotFound' },
        { token: tokenOf('passwordReset', disabled), acting: null, reason: 'accountDisabled' },
        {
          token: tokenOf('emailChange', disabled),
          acting: former.id,
          reason: 'accountDisabled',
        },
        { token: change, acting: uuidv7(), reason: 'sessionNotFound' },
      ]
      for (const { token, acting, reason } of rejected) {
        t.equal(await keep(token, acting), reason)
        t.equal(await storage.emailTokens.find(token.digest, NOW), undefined)
      }
      t.equal(await keep(change, session.id), 'added')
    },
  )

  t.test('the number of tokens per purpose, user and hour is limited', async t => {
    const { user } = await add(storage)
    const { user: other } = await add(storage)
    for (let number = 0; number < MAX_MAILS; number += 1)
      t.equal(await keep(tokenOf('passwordReset', user, NOW + number)), 'added', `number ${number + 1}`)
    t.equal(await keep(tokenOf('passwordReset', user, NOW + MAIL_WINDOW - 1)), 'tooManyMails')
    t.equal(await keep(tokenOf('verification', user)), 'added', 'of another purpose')
    t.equal(await keep(tokenOf('passwordReset', other)), 'added', "another user's")
    t.equal(await keep(tokenOf('passwordReset', user, NOW + MAIL_WINDOW + 1)), 'added', 'an hour later')
  })

  t.test('the limit holds for a hundred concurrent requests on two instances', async t => {
    const [here, there] = [await open(t), await open(t)]
    const { user } = await add(here)
    const kept = await Promise.all(
      Array.from({ length: 100 }, (_, index) => {
        const token = tokenOf('passwordReset', user)
        return (index % 2 ? here : there).emailTokens.add(token, requestOf(token), null)
      }),
    )
    t.equal(kept.filter(outcome => outcome === 'added').length, MAX_MAILS)
  })

  t.test('verification verifies and uses up only its own token', async t => {
    const { user, session, tokens } = await addWithTokens()
    const verified = { ...asStored(user), emailVerified: true, updatedAt: LATER, version: 2 }
    t.strictSame(await confirm(tokens.verification), verified)
    t.strictSame(await storage.users.find(user.id), verified)
    t.ok(await storage.sessions.find(session.id), 'no session ends')
    t.strictSame(await usable(tokens), ['emailChange', 'passwordReset'])
    t.equal(await confirm(tokens.verification), 'notFound', 'once')
  })

  t.test('an e-mail change sets and verifies the address, and uses up all tokens', async t => {
    const { user, session, tokens } = await addWithTokens()
    const other = await addWithTokens()
    const changed = {
      ...asStored(user),
      email: tokens.emailChange.email,
      emailVerified: true,
      updatedAt: LATER,
      version: 2,
    }
    t.strictSame(await confirm(tokens.emailChange), changed)
    t.strictSame((await storage.users.findByEmail(tokens.emailChange.email))?.user, changed)
    t.equal(await storage.users.findByEmail(user.email), undefined)
    t.ok(await storage.sessions.find(session.id), 'no session ends')
    t.strictSame(await usable(tokens), [])
    t.equal(await confirm(tokens.emailChange), 'notFound', 'once')
    t.strictSame(await usable(other.tokens), [...PURPOSES].sort(), "no other user's")
  })

  t.test('a taken address cannot be confirmed, and nothing changes', async t => {
    const { user, tokens } = await addWithTokens()
    await add(storage, { email: tokens.emailChange.email })
    t.equal(await confirm(tokens.emailChange), 'emailTaken')
    t.strictSame(await storage.users.find(user.id), asStored(user))
  })

  t.test('a reset replaces the hash, ends sessions, opens one, verifies, uses up all tokens', async t => {
    const { user, session, tokens } = await addWithTokens()
    const other = await addWithTokens()
    const fresh = sessionOf(user.id, { createdAt: LATER })
    const changed = { ...asStored(user), emailVerified: true, updatedAt: LATER, version: 2 }
    t.strictSame(await reset(tokens.passwordReset, 'new hash', fresh), changed)
    t.strictSame(await storage.users.findByEmail(user.email), { user: changed, passwordHash: 'new hash' })
    t.equal(await storage.sessions.find(session.id), undefined)
    t.strictSame(await storage.sessions.list(user.id, NOW, 0, 10), [fresh])
    t.strictSame(await usable(tokens), [])
    t.equal(await reset(tokens.passwordReset, 'newer'), undefined, 'once')
    t.equal((await storage.users.findByEmail(user.email))?.passwordHash, 'new hash')
    t.ok(await storage.sessions.find(other.session.id))
    t.strictSame(await usable(other.tokens), [...PURPOSES].sort(), "no other user's")
  })

  t.test('an expired token, or one of a disabled user, changes nothing', async t => {
    const { user, session, tokens } = await addWithTokens()
    t.equal(await confirm(tokens.verification, tokens.verification.expiresAt), 'notFound')
    const late = eventOf(user.id, tokens.passwordReset.expiresAt)
    const fresh = sessionOf(user.id)
    t.equal(await resetBy(storage, tokens.passwordReset, 'late', fresh, late), undefined)
    t.strictSame(await storage.users.find(user.id), asStored(user))
    t.ok(await storage.sessions.find(session.id))
    await storage.users.update(user.id, { disabled: true }, eventOf(user.id), INVALIDATE)
    t.strictSame(await usable(tokens), [])
    t.equal(await confirm(tokens.verification), 'notFound')
    t.equal(await confirm(tokens.emailChange), 'notFound')
    t.equal(await reset(tokens.passwordReset), undefined)
    t.match(await storage.users.findByEmail(user.email), {
      user: { emailVerified: false },
      passwordHash: user.passwordHash,
    })
  })

  t.test('a new e-mail, disabling and a new password invalidate tokens for good', async t => {
    const moved = await addWithTokens()
    await storage.users.update(moved.user.id, { email: freshEmail() }, eventOf(moved.user.id), INVALIDATE)
    t.strictSame(await usable(moved.tokens), [], 'a new e-mail')
    for (const options of [INVALIDATE, END]) {
      const { user, tokens } = await addWithTokens()
      await storage.users.update(user.id, { disabled: true }, eventOf(user.id), options)
      await storage.users.update(user.id, { disabled: false }, eventOf(user.id), KEEP)
      t.strictSame(await usable(tokens), [], `disabled, and enabled again: ${JSON.stringify(options)}`)
    }
    const named = await addWithTokens()
    await storage.users.update(named.user.id, { firstName: 'Named' }, eventOf(named.user.id), KEEP)
    t.strictSame(await usable(named.tokens), [...PURPOSES].sort(), 'a name makes none invalid')
    for (const [emailVerified, left] of [
      [true, ['verification']],
      // A stranger may have opened the account: the owner's way in stays.
      [false, ['passwordReset', 'verification']],
    ] as const) {
      const { user, session, tokens } = await addWithTokens({ emailVerified })
      const acting = actingIn(session, user.passwordHash)
      await storage.accounts.changePassword(sessionOf(user.id), acting, 'new', eventOf(user.id))
      t.strictSame(await usable(tokens), left, `a new password, ${emailVerified}`)
    }
  })

  t.test('a token used a hundred times concurrently on two instances works exactly once', async t => {
    const [storage, there] = [await open(t), await open(t)]
    const stores = Array.from({ length: 100 }, (_, index) => (index % 2 ? storage : there))
    const addWithToken = async (purpose: EmailTokenPurpose) => {
      const { user } = await add(storage)
      const token = tokenOf(purpose, user)
      t.equal(await storage.emailTokens.add(token, eventOf(user.id), null), 'added')
      return { user, token }
    }
    for (const purpose of ['verification', 'emailChange'] as const) {
      const { user, token } = await addWithToken(purpose)
      const outcomes = await Promise.all(
        stores.map(store => store.emailTokens.confirmEmail(token, eventOf(user.id, LATER), proofOf(user))),
      )
      t.equal(outcomes.filter(outcome => typeof outcome === 'object').length, 1, purpose)
      t.equal((await storage.users.find(user.id))?.version, 2, `${purpose}: changed once`)
    }
    const { user, token } = await addWithToken('passwordReset')
    const outcomes = await Promise.all(
      stores.map((store, index) =>
        resetBy(store, token, `hash ${index}`, sessionOf(user.id), eventOf(user.id, LATER)),
      ),
    )
    t.equal(outcomes.filter(Boolean).length, 1)
    const found = await storage.users.findByEmail(user.email)
    t.equal(found?.passwordHash, `hash ${outcomes.findIndex(Boolean)}`, "the winner's")
    t.equal((await storage.sessions.list(user.id, NOW, 0, 10)).length, 1)
  })

  t.test('an unknown token changes nothing', async t => {
    const { user } = await add(storage)
    t.equal(await confirm(tokenOf('verification', user)), 'notFound')
    t.equal(await reset(tokenOf('passwordReset', { ...user, id: uuidv7() })), undefined)
    t.strictSame(await storage.users.find(user.id), asStored(user))
  })
}
