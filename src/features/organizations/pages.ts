/** Organizations on the hosted pages: a section of the security page, a list, one organization, and the page of an invitation's link. */
import { fill } from '#base/texts'
import {
  avatar,
  backToSecurity,
  badge,
  button,
  type FeaturePages,
  type FieldErrors,
  Form,
  type Html,
  hiddenField,
  html,
  itemRow,
  linkRow,
  links,
  messagePage,
  NO_ERRORS,
  type Page,
  type PageContext,
  rowList,
  time,
} from '#http/pages/feature-pages'
import { fillHtml } from '#http/pages/html'
import { card, cardWith, noticeOf } from '#http/pages/layout'
import { withReturn } from '#http/pages/return-links'
import type { serializeInvitation, serializeOwnInvitation } from './invitations.ts'
import type { serializeMember } from './members.ts'
import { mayManageMembers, OWNER, type ShownInvitation } from './organization.ts'
import type { serializeOwnOrganization } from './organizations.ts'
import { TEXTS } from './page-texts.ts'

/** The path of the list below the service, without a slash at the start. */
export const LIST = 'security/organizations'
export const ACCEPT = 'organizations/accept'

type OwnOrganization = ReturnType<typeof serializeOwnOrganization>
type Member = ReturnType<typeof serializeMember>
type Invitation = ReturnType<typeof serializeInvitation>

interface ListOf<Item> {
  readonly results: readonly Item[]
  readonly nextCursor: string | null
}

const tags = (roles: readonly string[]): Html => html`${roles.map(role => badge(role))}`

const organizationRow = ({ root, textsOf }: PageContext, { id, name, roles }: OwnOrganization): Html => {
  const own = textsOf(TEXTS)
  return itemRow({
    avatar: avatar(name, 'square'),
    title: html`${name}${tags(roles)}`,
    action: html`<a class="button" href="${root}${LIST}/${id}" aria-label="${fill(own.openOf, { name })}">${own.open}</a>`,
  })
}

const organizationRows = (context: PageContext, { results }: ListOf<OwnOrganization>): readonly Html[] => [
  ...results.map(each => organizationRow(context, each)),
  linkRow(context, LIST, context.textsOf(TEXTS).manage),
]

export interface ListState {
  readonly organizations: ListOf<OwnOrganization>
  readonly waiting: readonly ReturnType<typeof serializeOwnInvitation>[]
  readonly notice?: string | undefined
  readonly name?: string
  readonly errors?: FieldErrors
}

const nextLink = (context: PageContext, path: string, cursor: string | null): Html =>
  html`${
    cursor !== null &&
    html`<p><a href="${context.root}${path}?cursor=${cursor}">${context.textsOf(TEXTS).next}</a></p>`
  }`

export const organizationsPage = (
  context: PageContext,
  { organizations, waiting, notice, name, errors = NO_ERRORS }: ListState,
): Page => {
  const own = context.textsOf(TEXTS)
  const form = new Form(context, errors)
  const nameField = form.field({ name: 'name', label: own.name, value: name, autocomplete: 'organization' })
  return {
    title: own.title,
    isWide: true,
    isSignedIn: true,
    hasErrors: form.hasErrors,
    body: html`<h1>${own.title}</h1>
${noticeOf(notice)}
${form.summary()}
<section>
${
  organizations.results.length === 0
    ? html`<p class="muted">${own.none}</p>`
    : rowList(organizations.results.map(each => organizationRow(context, each)))
}
${nextLink(context, LIST, organizations.nextCursor)}
</section>
${
  waiting.length > 0 &&
  html`<section>
<h2>${own.waiting}</h2>
<p>${own.waitingText}</p>
${rowList(
  waiting.map(({ organization, roles }) =>
    itemRow({ avatar: avatar(organization.name, 'square'), title: html`${organization.name}${tags(roles)}` }),
  ),
)}
</section>`
}
<section>
<h2>${own.create}</h2>
<form class="card card-body stack" method="post" action="${context.root}${LIST}">
${nameField}
<div class="buttons"><button class="primary">${own.create}</button></div>
</form>
</section>
${backToSecurity(context)}`,
  }
}

/** What a form was sent with, to show it again. */
export interface SentForm {
  readonly form: 'settings' | 'invite' | 'roles'
  readonly values: Readonly<Record<string, string>>
  readonly roles?: readonly string[]
  readonly errors: FieldErrors
}

export interface OrganizationState {
  readonly organization: OwnOrganization
  readonly userId: string
  readonly members: ListOf<Member>
  /** `null` for those who do not manage members. */
  readonly invitations: ListOf<Invitation> | null
  readonly roles: readonly string[]
  readonly notice?: string | undefined
  readonly sent?: SentForm
}

const nameOf = ({ firstName, lastName, email, userId }: Member): string =>
  [firstName, lastName].filter(Boolean).join(' ') || email || userId

const rolesGroup = (form: Form, label: string, roles: readonly string[], chosen: readonly string[]): Html =>
  form.group(
    'roles',
    label,
    roles.map(role =>
      form.check({ name: `role:${role}`, label: html`${role}`, isChecked: chosen.includes(role) }),
    ),
  )

/** The roles that a member may give: admins not those of owners and admins. */
const givable = ({ organization, roles }: OrganizationState): readonly string[] =>
  organization.roles.includes(OWNER) ? roles : roles.filter(role => !mayManageMembers([role]))

const formOf = (context: PageContext, { sent }: OrganizationState, form: SentForm['form'], id = ''): Form => {
  const isSent = sent?.form === form && (sent.values.id ?? '') === id
  return new Form(context, isSent ? sent.errors : NO_ERRORS, `${form}${id}-`)
}

const memberItem = (context: PageContext, state: OrganizationState, member: Member): Html => {
  const own = context.textsOf(TEXTS)
  const { organization, userId } = state
  const isOwner = organization.roles.includes(OWNER)
  const mayChange = isOwner || (mayManageMembers(organization.roles) && !mayManageMembers(member.roles))
  const path = `${LIST}/${organization.id}`
  const name = nameOf(member)
  const form = formOf(context, state, 'roles', member.userId)
  const mayRemove = mayChange && member.userId !== userId
  const hasName = member.email !== null && member.email !== name
  return html`<li class="row-item">${avatar(name)}<span class="grow"><strong>${name}</strong>${member.userId === userId && html` <span class="muted">(${own.you})</span>`}${tags(member.roles)}${hasName && html`<small>${member.email}</small>`}</span>${
    mayRemove &&
    button(context, {
      action: `${path}/remove`,
      text: own.remove,
      label: fill(own.removeOf, { name }),
      className: 'danger',
      id: member.userId,
    })
  }${
    mayChange &&
    html`<details class="disclosure"${form.hasErrors && html` open`}><summary aria-label="${fill(own.changeRolesOf, { name })}">${own.changeRoles}</summary>
<form class="stack" method="post" action="${context.root}${path}/roles">
${hiddenField('id', member.userId)}
${rolesGroup(form, own.roles, givable(state), member.roles)}
<div class="buttons"><button>${own.save}</button></div>
</form></details>`
  }</li>
`
}

const invitationItem = (
  context: PageContext,
  { organization }: OrganizationState,
  { id, email, roles, expiresAt }: Invitation,
): Html => {
  const own = context.textsOf(TEXTS)
  return itemRow({
    icon: 'mail',
    title: html`<span class="break">${email}</span>${tags(roles)}`,
    note: html`${own.until} ${time(context, expiresAt)}`,
    action: button(context, {
      action: `${LIST}/${organization.id}/revoke`,
      text: own.revoke,
      label: fill(own.revokeOf, { email }),
      id,
    }),
  })
}

const invitationsSection = (context: PageContext, state: OrganizationState, form: Form): Html => {
  const own = context.textsOf(TEXTS)
  const { invitations, organization, sent } = state
  if (invitations === null) return html``
  const isSent = sent?.form === 'invite'
  const email = form.field({
    name: 'email',
    label: own.email,
    type: 'email',
    value: isSent ? sent.values.email : undefined,
    autocomplete: 'off',
  })
  const chosen = (isSent ? sent.roles : undefined) ?? ['member']
  return html`<section>
<h2>${own.inviteTitle}</h2>
<form class="card card-body stack" method="post" action="${context.root}${LIST}/${organization.id}/invite">
${email}
${rolesGroup(form, own.roles, givable(state), chosen)}
<div class="buttons"><button class="primary">${own.invite}</button></div>
</form>
</section>
${
  invitations.results.length > 0 &&
  html`<section>
<h2>${own.invitations}</h2>
${rowList(invitations.results.map(each => invitationItem(context, state, each)))}
</section>`
}`
}

const settingsSection = (context: PageContext, state: OrganizationState, form: Form): Html => {
  const own = context.textsOf(TEXTS)
  const { organization, sent } = state
  if (!organization.roles.includes(OWNER)) return html``
  const values =
    sent?.form === 'settings' ? sent.values : { name: organization.name, slug: organization.slug }
  const fields = [
    form.field({ name: 'name', label: own.name, value: values.name, autocomplete: 'organization' }),
    form.field({
      name: 'slug',
      label: own.slug,
      value: values.slug,
      hint: own.slugHint,
      autocomplete: 'off',
    }),
  ]
  return html`<section>
<h2>${own.settings}</h2>
<form class="card card-body stack" method="post" action="${context.root}${LIST}/${organization.id}/settings">
${fields}
<div class="buttons"><button>${own.save}</button><a class="button danger" href="${context.root}${LIST}/${organization.id}/delete">${own.delete}</a></div>
</form>
</section>`
}

export const organizationPage = (context: PageContext, state: OrganizationState): Page => {
  const own = context.textsOf(TEXTS)
  const { organization, members, userId, notice, sent } = state
  const path = `${LIST}/${organization.id}`
  const [invite, settings] = [formOf(context, state, 'invite'), formOf(context, state, 'settings')]
  const sections = [invitationsSection(context, state, invite), settingsSection(context, state, settings)]
  const ofRoles = formOf(context, state, 'roles', sent?.values.id)
  const withErrors = [invite, settings, ofRoles].find(({ hasErrors }) => hasErrors)
  return {
    title: organization.name,
    isWide: true,
    isSignedIn: true,
    hasErrors: withErrors !== undefined,
    body: html`<div class="identity">${avatar(organization.name, 'large square')}<div><h1>${organization.name}</h1><p>${organization.slug}${tags(organization.roles)}</p></div></div>
${noticeOf(notice)}
${withErrors?.summary()}
<section>
<h2>${own.members}</h2>
${rowList(members.results.map(member => memberItem(context, state, member)))}
${nextLink(context, path, members.nextCursor)}
</section>
${sections}
<section>
${button(context, { action: `${path}/remove`, text: own.leave, className: 'danger', id: userId })}
</section>
${links([[`${context.root}${LIST}`, own.backToList]])}`,
  }
}

export const deleteOrganizationPage = (context: PageContext, { id, name }: OwnOrganization): Page => {
  const own = context.textsOf(TEXTS)
  return {
    title: own.delete,
    isSignedIn: true,
    body: html`${card(
      own.delete,
      html`<p>${fill(own.deleteText, { name })}</p>`,
      html`<form method="post" action="${context.root}${LIST}/${id}/delete"><button class="danger filled block">${own.delete}</button></form>`,
    )}
${links([[`${context.root}${LIST}/${id}`, own.back]])}`,
  }
}

export interface AcceptState extends ShownInvitation {
  readonly token: string
  /** Leads back to this page. */
  readonly back: Pick<PageContext, 'returnTo'>
}

/** Mail scanners open links, so only its button changes something. */
export const acceptPage = (
  context: PageContext,
  { organizationName: name, email, roles, expiresAt, token, back }: AcceptState,
): Page => {
  const { root, texts, user, hasSignUpPage } = context
  const own = context.textsOf(TEXTS)
  const title = fill(own.acceptTitle, { name })
  const prefilled = `email=${encodeURIComponent(email)}`
  const signIn = (path: string) => root + withReturn(`${path}?${prefilled}`, back)
  const signOut = root + withReturn('sign-out', back)
  const form = html`<form method="post" action="${root}${ACCEPT}">${hiddenField('token', token)}<button class="primary block">${own.accept}</button></form>`
  const next =
    user === null
      ? html`<p class="hint">${fill(own.signInFirst, { email })}</p>
<div class="stack">
${hasSignUpPage && html`<a class="button primary block" href="${signIn('sign-up')}">${texts.signUp}</a>\n`}<a class="button block" href="${signIn('sign-in')}">${texts.signIn}</a>
</div>`
      : user.email === email
        ? form
        : html`<p>${fill(own.forAnother, { email: user.email })}</p>
<a class="button block" href="${signOut}">${texts.signOut}</a>`
  return {
    title,
    isSignedIn: user !== null,
    body: cardWith(
      {
        emblem: avatar(name, 'large square'),
        foot: html`<span>${fillHtml(own.ends, { time: time(context, new Date(expiresAt).toISOString()) })}</span>`,
      },
      title,
      html`<p>${fill(own.acceptText, { name, email })}</p>`,
      html`<p>${tags(roles)}</p>`,
      next,
    ),
  }
}

export const badInvitationPage = (context: PageContext): Page => {
  const own = context.textsOf(TEXTS)
  return messagePage(context, {
    title: own.badInvitation,
    text: own.badInvitationText,
    next: context.hasSession ? [LIST, own.backToList] : ['sign-in', context.texts.signIn],
  })
}

export default {
  texts: TEXTS,
  security: {
    path: '/organizations?limit=5',
    section: {
      title: ({ textsOf }: PageContext) => textsOf(TEXTS).title,
      text: ({ textsOf }: PageContext) => textsOf(TEXTS).text,
    },
    rows: organizationRows,
  },
} satisfies FeaturePages
