/** The pages of organizations: without script, in both languages (docs/organizations.md). */
import t from 'tap'
import {
  build,
  confirmedUser,
  freshEmail,
  newFile,
  PASSWORD,
  type SignedUp,
  signUp,
} from '../support/build.ts'
import { FormClient } from '../support/form-client.ts'
import { mailbox } from '../support/mailbox.ts'
import { addMember, adminCall, call, invitationLink, organizationOf, team } from '../support/organizations.ts'

const app = await build(t, { env: { ORGANIZATION_ROLES: 'billing' } })
const mails = mailbox(app)

const signedIn = async ({ email }: Pick<SignedUp, 'email'>): Promise<FormClient> => {
  const browser = new FormClient(app)
  await browser.open('/sign-in')
  await browser.submit('sign-in', { email, password: PASSWORD })
  return browser
}

const linkOf = async (email: string, count = 1): Promise<string> =>
  `/organizations/accept?token=${await mails.token(email, 'organizationInvitation', count)}`

t.test('an organization is created, renamed, and somebody is invited, who accepts', async t => {
  const ann = await confirmedUser(app)
  const browser = await signedIn(ann)
  await browser.open('/security')
  t.match(browser.page, /<h2 id="[\w-]+">Organizations<\/h2>/)
  await browser.open('/security/organizations')
  t.match(browser.page, 'You are in no organization.')
  await browser.submit('security/organizations', { name: ' ' })
  t.equal(browser.status, 400)
  t.match(browser.page, /class="notice bad"/)
  await browser.submit('security/organizations', { name: 'Win at www.evil.example' })
  t.match(browser.page, 'A name must not contain “://” or “www.”.')
  await browser.submit('security/organizations', { name: 'Otters & <b>Co</b>' })
  t.equal(browser.heading, 'Otters & <b>Co</b>')
  t.match(browser.page, 'The organization is saved.')
  t.notMatch(browser.page, '<b>Co</b>')
  const path = browser.path
  await browser.submit('/settings', { name: 'Otters', slug: 'admin' })
  t.equal(browser.status, 400)
  t.match(browser.page, /value="admin"/, 'what was entered')
  await browser.submit('/settings', { name: 'Otters', slug: `otters-${process.pid}` })
  t.equal(browser.heading, 'Otters')

  const email = freshEmail('ben')
  await browser.submit('/invite', { email: 'no e-mail' })
  t.equal(browser.status, 400)
  await browser.submit('/invite', { email, 'role:billing': 'on' })
  t.match(browser.page, 'The invitation is mailed.')
  t.match(browser.page, email)

  const stranger = new FormClient(app)
  await stranger.open(await linkOf(email))
  t.match(stranger.page, 'You are invited to the organization “Otters”')
  t.notMatch(stranger.page, /<form method="post" action="[^"]*accept"/)
  t.match(stranger.page, /sign-in/)
  const ben = await confirmedUser(app, { email })
  const other = await signedIn(ben)
  await other.open('/security/organizations')
  t.match(other.page, 'The link in the mail accepts an invitation.')
  await other.open(await linkOf(email))
  t.equal((await call(app, ben, 'GET', '/organizations')).json().results.length, 0, 'opening changes nothing')
  const twin = other.twin()
  await other.submit('accept', {})
  t.equal(other.path, path)
  t.match(other.page, 'You are a member now.')
  t.notMatch(other.page, new RegExp(ann.email), 'a member sees no e-mails')
  t.notMatch(other.page, /\/invite"|\/settings"|\/roles"/)
  await twin.submit('accept', {})
  t.equal(twin.status, 400)
  await new FormClient(app).open(await linkOf(email)).then(again => t.match(again.page, 'does not work'))
  await other.submit('/remove', {})
  t.equal(other.path, '/security/organizations')
  t.match(other.page, 'You have left the organization.')
  await other.open(path)
  t.equal(other.status, 404)
})

t.test('who signs in or up behind the link comes back to it, and the mailbox is confirmed', async t => {
  const email = freshEmail()
  const link = await invitationLink(app, email)
  const browser = await new FormClient(app).open(link)
  await browser.follow('Create an account')
  t.match(browser.page, `value="${email}"`)
  await browser.submit('sign-up', { password: PASSWORD })
  t.equal(browser.path, '/organizations/accept')
  const user = (await adminCall(app, 'GET', `/admin/users?email=${email}`)).json().results[0]
  t.equal(user.emailVerified, false)
  await browser.submit('accept')
  t.match(browser.page, 'You are a member now.')
  t.equal((await adminCall(app, 'GET', `/admin/users/${user.id}`)).json().emailVerified, true)
  const { results } = (await adminCall(app, 'GET', `/admin/events?userId=${user.id}`)).json()
  t.ok(results.some(({ type }: { type: string }) => type === 'email.verified'))

  const ann = await confirmedUser(app)
  const other = await new FormClient(app).open(await invitationLink(app, ann.email))
  await other.follow('Sign in')
  await other.submit('sign-in', { password: PASSWORD })
  t.equal(other.path, '/organizations/accept')
  await other.submit('accept')
  t.match(other.page, 'You are a member now.')
})

t.test('an API key does not confirm the e-mail, and another account is no recipient', async t => {
  const user = await signUp(app)
  const link = new URL(await invitationLink(app, user.email), 'http://gatehouse.test')
  const payload = { name: 'a key', scopes: ['organizations:write'] }
  const { token: key } = (await call(app, user, 'POST', '/account/api-keys', payload)).json()
  const token = link.searchParams.get('token')
  t.equal((await call(app, { token: key }, 'POST', '/account/invitations/accept', { token })).statusCode, 403)
  const another = await signUp(app)
  t.equal((await call(app, another, 'POST', '/account/invitations/accept', { token })).statusCode, 403)
  const browser = await new FormClient(app).open('/sign-in')
  await browser.submit('sign-in', { email: another.email, password: PASSWORD })
  await browser.open(link.pathname + link.search)
  t.match(browser.page, `You are signed in as ${another.email}.`)
  t.equal((await call(app, user, 'POST', '/account/invitations/accept', { token })).statusCode, 200)
})

t.test('an invitation leads back to the application that has sent it', async t => {
  const own = await build(t, { env: { RETURN_ORIGINS: 'https://app.example.com' } })
  const { url, owner } = await team(own)
  const ben = await confirmedUser(own)
  const invitation = { email: ben.email, roles: ['member'], returnTo: 'https://app.example.com/team' }
  t.equal((await call(own, owner, 'POST', `${url}/invitations`, invitation)).statusCode, 201)
  const token = await mailbox(own).token(ben.email, 'organizationInvitation')
  const browser = await new FormClient(own).open(`/organizations/accept?token=${token}`)
  await browser.follow('Sign in')
  await browser.submit('sign-in', { password: PASSWORD })
  await browser.submit('accept')
  t.match(browser.page, '<meta http-equiv="refresh" content="0; url=https://app.example.com/team">')
})

t.test('with required verification the link that confirms leads back to the invitation', async t => {
  const email = freshEmail()
  const DATABASE_URL = await newFile(t)
  const link = await invitationLink(await build(t, { env: { DATABASE_URL } }), email)
  const own = await build(t, { env: { DATABASE_URL, REQUIRE_EMAIL_VERIFICATION: 'true' } })
  const german = new FormClient(own, { headers: { 'accept-language': 'de' } })
  t.match((await german.open(link)).page, '>Konto erstellen</a>')
  const browser = await new FormClient(own).open(link)
  await browser.follow('Create an account')
  await browser.submit('sign-up', { email, password: PASSWORD })
  await browser.open(`/account/verify-email?token=${await mailbox(own).token(email, 'signUp')}`)
  await browser.submit('confirm', { password: PASSWORD })
  t.equal(browser.path, '/organizations/accept')
  await browser.submit('accept')
  t.match(browser.page, 'You are a member now.')
})

t.test('without a page to sign up there is no link to it', async t => {
  const own = await build(t, { env: { SIGN_UP_PAGE: 'off' } })
  const browser = await new FormClient(own).open(await invitationLink(own, freshEmail()))
  t.match(browser.page, 'sign-in')
  t.notMatch(browser.page, 'sign-up')
})

t.test('owners change roles and remove members; admins only those below', async t => {
  const { organization, owner, admin, member } = await team(app)
  const path = `/security/organizations/${organization.id}`
  const ofOwner = await signedIn(owner)
  await ofOwner.open(path)
  const roles = (userId: string, ...chosen: string[]) => ({
    id: userId,
    ...Object.fromEntries(chosen.map(role => [`role:${role}`, 'on'])),
  })
  const change = async (browser: FormClient, fields: Record<string, string>) => {
    await browser.post(`${path}/roles`, fields)
    return browser
  }
  t.match((await change(ofOwner, roles(member.id, 'billing'))).page, 'The roles are changed.')
  t.match((await change(ofOwner, roles(member.id))).page, /class="notice bad"/)
  t.match((await change(ofOwner, roles(owner.id, 'member'))).page, 'This is the last owner.')
  const ofAdmin = await signedIn(admin)
  await ofAdmin.open(path)
  t.notMatch(ofAdmin.page, /name="role:owner"|\/settings"/)
  t.match((await change(ofAdmin, roles(owner.id, 'member'))).page, 'do not allow this')
  await ofAdmin.post(`${path}/remove`, { id: member.id })
  t.match(ofAdmin.page, 'The member is removed.')
  await ofOwner.open(`${path}/delete`)
  t.match(ofOwner.page, 'cannot be undone')
  await ofOwner.submit('/delete', {})
  t.match(ofOwner.page, 'The organization is deleted.')
  await ofAdmin.open(path)
  t.equal(ofAdmin.status, 404)
})

t.test('lists have further pages; German; without a session: sign in', async t => {
  const { organization, owner } = await team(app)
  for (let each = 0; each < 21; each += 1)
    await addMember(app, organization.id, (await confirmedUser(app)).id)
  const browser = await signedIn(owner)
  await call(app, owner, 'PUT', '/account', { locale: 'de' })
  await browser.open(`/security/organizations/${organization.id}`)
  t.match(browser.page, /<html lang="de">/)
  t.match(browser.page, 'Mitglieder')
  const next = /href="([^"]*\?cursor=[^"]*)"/.exec(browser.page)?.[1]
  t.ok(next)
  await browser.open(`/${next?.replaceAll('../', '')}`)
  t.equal(browser.status, 200)
  t.notMatch(browser.page, /\?cursor=/)
  await browser.open(`/security/organizations/${organization.id}?cursor=x`)
  t.equal(browser.status, 400)
  for (const path of ['', `/${organization.id}`, `/${organization.id}/delete`]) {
    const stranger = new FormClient(app)
    await stranger.open(`/security/organizations${path}`)
    t.equal(stranger.path, '/sign-in')
  }
})

t.test('with PAGES=off there are no such pages, and the mail leads to WEB_URL', async t => {
  const own = await build(t, { env: { WEB_URL: 'https://app.example.com/base', PAGES: 'off' } })
  for (const path of ['/security/organizations', '/organizations/accept?token=x'])
    t.not((await own.inject({ url: path, headers: { accept: 'text/html' } })).statusCode, 200)
  const owner = await confirmedUser(own)
  const { id } = await organizationOf(own, owner)
  const email = freshEmail()
  await call(own, owner, 'POST', `/organizations/${id}/invitations`, { email, roles: ['member'] })
  const [mail] = await mailbox(own).to(email, 'organizationInvitation')
  t.match(mail?.text, 'https://app.example.com/base/organizations/accept?token=')
})
