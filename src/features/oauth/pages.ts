/** The authorization server on the hosted pages: consent, the way back to a client, and connected applications on the security page. */
import { fill } from '#base/texts'
import type { FeaturePages } from '#http/pages/feature-pages'
import { fillHtml, type Html, html } from '#http/pages/html'
import { type IconName, icon } from '#http/pages/icons'
import { ago, avatar, button, card, hiddenField, type Page, type PageContext, time } from '#http/pages/layout'
import { type returnToPage, SIGN_IN_AGAIN, withLocales, withReturn } from '#http/pages/return-links'
import { itemRow } from '#http/pages/rows'
import type { ConsentOrganizations, ConsentScopes } from './authorizations.ts'
import { type Client, isUnverified } from './client.ts'
import type { serializeGrant } from './grants.ts'
import { TEXTS } from './page-texts.ts'
import { isOfDevice } from './redirect-uris.ts'

export interface ConsentState {
  /** Names the request. */
  readonly request: string
  readonly client: Client
  readonly redirectUri: string
  readonly scopes: ConsentScopes
  readonly organizations: ConsentOrganizations
  readonly email: string
  /** The page itself, for a user who signs in to another account. */
  readonly back: ReturnType<typeof returnToPage>
  /** The languages that the client asks for. */
  readonly locales: readonly string[]
}

const iconOf = (scope: string): IconName => {
  if (scope === 'offline_access') return 'clock'
  if (scope.startsWith('organizations:')) return 'organization'
  if (scope.endsWith(':write')) return 'edit'
  return scope.startsWith('users:') ? 'users' : 'user'
}

/** A host, or the scheme of an app. */
const hostOf = (uri: string): Html => {
  const { host, protocol } = new URL(uri)
  return html`<strong class="break">${host === '' ? protocol : host}</strong>`
}

/** That nobody has checked who the client is. */
export const unverified = (context: PageContext, { client }: { readonly client: Client }): Html | false => {
  if (!isUnverified(client)) return false
  const own = context.textsOf(TEXTS)
  const { documentUrl } = client
  const { product } = context
  const text =
    documentUrl === null
      ? fill(own.unverified, { product })
      : fillHtml(own.unverifiedDocument, { product: html`${product}`, host: hostOf(documentUrl) })
  return html`<p class="notice warn">${icon('warning')}<span>${text}</span></p>\n`
}

/** Where the user goes on: a host, or a program that any could pretend to be. */
const destination = (context: PageContext, { redirectUri, client }: ConsentState): Html => {
  const own = context.textsOf(TEXTS)
  const host = hostOf(redirectUri)
  if (isOfDevice(redirectUri))
    return html`<p class="notice warn">${icon('warning')}<span>${fillHtml(own.goOnToDevice, { host })}</span></p>`
  const stranger =
    !client.firstParty && !isUnverified(client) && html` ${fill(own.stranger, { product: context.product })}`
  return html`<p class="notice">${icon('info')}<span>${fillHtml(own.goOn, { host })}${stranger}</span></p>`
}

/** The documents of a client. */
export const documents = (context: PageContext, { policyUri, termsUri }: Client): Html | false => {
  const own = context.textsOf(TEXTS)
  const items = (
    [
      [policyUri, own.policy],
      [termsUri, own.terms],
    ] as const
  ).filter(([uri]) => uri !== null)
  return (
    items.length > 0 &&
    html`<p class="card-foot">${items.map(([uri, text]) => html`<a href="${uri}" rel="noreferrer">${text}</a>`)}</p>\n`
  )
}

/** Which organization the access is limited to. None is preselected. */
const organizationField = (context: PageContext, offered: ConsentOrganizations): Html | false => {
  const own = context.textsOf(TEXTS)
  if (offered.kind === 'named')
    return html`<p class="notice">${icon('organization')}<span>${fillHtml(own.onlyIn, { organization: html`<strong class="break">${offered.organization.name}</strong>` })}</span></p>
`
  const { organizations } = offered
  return (
    organizations.length > 0 &&
    html`<div class="field"><label for="organization">${own.organization}</label>
<select id="organization" name="organization"><option value="" selected>${own.everyOrganization}</option>
${organizations.map(
  ({ id, name }) => html`<option value="${id}">${name}</option>
`,
)}</select></div>
`
  )
}

/** The logo of the brand and a picture of the client. */
export const handshake = ({ brand, product, root }: PageContext): Html => {
  const logo =
    brand.logo === null || brand.logo.isWordmark
      ? html`<span class="logo">${[...product][0]}</span>`
      : html`<img class="logo" src="${root}${brand.logo.url}" alt="">`
  return html`<div class="handshake" aria-hidden="true"><span class="tile">${logo}</span><span class="line"></span><span class="tile">${icon('application')}</span></div>`
}

/** Whose account a page is about. @param back the page itself, for a user who signs in to another account. */
export const accountChip = (context: PageContext, email: string, back: ConsentState['back']): Html =>
  html`<p class="account-chip">${avatar(email)}<span class="break">${email}</span><a href="${context.root}${withReturn(`sign-in?${SIGN_IN_AGAIN}`, back)}">${context.textsOf(TEXTS).notYou}</a></p>`

/** What a client will be able to do. */
export const ableTo = (context: PageContext, client: Client, scopes: ConsentScopes): Html => {
  const own = context.textsOf(TEXTS)
  const inWords: Readonly<Record<string, string>> = own.scopes
  return html`<div class="field"><h2>${fill(own.able, { client: client.name })}</h2>
<ul class="scopes">${scopes.map(
    ([scope, description]) =>
      html`<li>${icon(iconOf(scope))}<span>${inWords[scope] ?? html`<span lang="en">${description}</span>`}</span></li>\n`,
  )}</ul></div>`
}

export const consentPage = (context: PageContext, state: ConsentState): Page => {
  const own = context.textsOf(TEXTS)
  const { client, scopes, organizations, request, email, back, locales } = state
  const title = fill(own.title, { client: client.name, product: context.product })
  return {
    title,
    isSignedIn: true,
    hasWideCard: true,
    body: html`<form class="card" method="post" action="${context.root}${withLocales('oauth/consent', locales)}">
<div class="card-body">
<div class="heading middle">${handshake(context)}<h1>${title}</h1></div>
${accountChip(context, email, back)}
${ableTo(context, client, scopes)}
${organizationField(context, organizations)}${unverified(context, state)}${destination(context, state)}
${hiddenField('request', request)}
<div class="pair">
<button name="decision" value="deny">${own.deny}</button>
<button class="primary" name="decision" value="allow">${own.allow}</button>
</div>
</div>
${documents(context, client)}</form>`,
  }
}

/** Opens the client: browsers would apply `form-action` of the page with the form to a redirect. */
export const leavingPage = (context: PageContext, url: string): Page => {
  const own = context.textsOf(TEXTS)
  return {
    title: own.leaving,
    refreshTo: url,
    body: card(own.leaving, html`<p><a href="${url}">${own.leave}</a></p>`),
  }
}

type OwnGrant = ReturnType<typeof serializeGrant>

const grantRow = (context: PageContext, { id, client, scopes, createdAt, lastUsedAt }: OwnGrant): Html => {
  const own = context.textsOf(TEXTS)
  return itemRow({
    avatar: avatar(client.name, 'square'),
    title: client.name,
    note: html`${scopes.join(', ')} · ${own.since} ${time(context, createdAt)} · ${context.texts.lastUsed} ${ago(context, lastUsedAt)}`,
    action: button(context, {
      action: 'security/grants/end',
      text: own.end,
      label: fill(own.endOf, { client: client.name }),
      id,
    }),
  })
}

const grantRows = (
  context: PageContext,
  { results }: { readonly results: readonly OwnGrant[] },
): readonly Html[] => results.map(each => grantRow(context, each))

export default ({ OAUTH }: { readonly OAUTH: 'on' | 'off' }): FeaturePages => ({
  texts: TEXTS,
  ...(OAUTH === 'on' && {
    security: { path: '/account/grants', section: 'applications', rows: grantRows },
  }),
})
