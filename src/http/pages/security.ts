/** Pages of signed-in users: sessions, password. Features add sections. */

import type { FieldErrors } from '#base/errors'
import { fill } from '#base/texts'
import { type Html, html } from './html.ts'
import {
  backToSecurity,
  button,
  deviceOf,
  Form,
  formPage,
  hiddenField,
  messagePage,
  NO_ERRORS,
  type Page,
  type PageContext,
  time,
  usernameField,
} from './layout.ts'
import { sentencesOf } from './messages.ts'
import { oneTimeCodeField } from './signed-out.ts'

interface Session {
  readonly id: string
  readonly createdAt: string
  readonly lastRequestAt: string
  readonly ip: string | null
  readonly userAgent: string | null
  readonly impersonated: boolean
  readonly current: boolean
}

export interface SecurityState {
  readonly account: { readonly email: string; readonly emailVerified: boolean }
  readonly sessions: readonly Session[]
  readonly hasPassword: boolean
  /** What features add: about factors, and other sections. */
  readonly factors: readonly Html[]
  readonly sections: readonly Html[]
  /** Text that is shown once, after a redirect. */
  readonly notice: string | undefined
}

const sessionItem = (context: PageContext, session: Session): Html => {
  const { texts } = context
  const client = deviceOf(context, session.userAgent)
  return html`<li><div>
<p>${client}${session.current && html` <strong class="tag">${texts.thisSession}</strong>`}${
    session.impersonated && html` <strong class="tag">${texts.impersonatedSession}</strong>`
  }</p>
<p class="muted">${session.ip !== null && html`${session.ip} · `}${texts.sessionSince} ${time(context, session.createdAt)} · ${texts.lastUsed} ${time(context, session.lastRequestAt)}</p>
</div>${button(context, {
    action: 'security/sessions/end',
    text: texts.endSession,
    label: fill(texts.endSessionOf, { client }),
    className: 'plain',
    id: session.id,
  })}</li>`
}

const sessionsSection = (context: PageContext, sessions: readonly Session[]): Html => {
  const { texts } = context
  return html`<section>
<h2>${texts.sessions}</h2>
<p>${texts.sessionsText}</p>
<ul class="list">${sessions.map(session => sessionItem(context, session))}</ul>
${
  sessions.length > 1 &&
  button(context, { action: 'security/sessions/end-others', text: texts.endOthers, className: 'plain' })
}
</section>`
}

export const securityPage = (context: PageContext, state: SecurityState): Page => {
  const { texts, root } = context
  const { account, notice } = state
  return {
    title: texts.security,
    isWide: true,
    isSignedIn: true,
    hasScripts: true,
    body: html`<h1>${texts.security}</h1>
${notice !== undefined && html`<div class="done" role="status" tabindex="-1" autofocus><p>${notice}</p></div>`}
<p>${fill(texts.signedInAs, { email: account.email })}</p>
${
  !account.emailVerified &&
  html`<section><p>${texts.emailNotConfirmed}</p>
${button(context, { action: 'security/verify-email', text: texts.resendButton, className: 'plain' })}</section>`
}
<section>
<h2>${texts.changePassword}</h2>
${
  state.hasPassword
    ? html`<p><a href="${root}security/password">${texts.changePasswordButton}</a></p>
${button(context, { action: 'security/password/remove', text: texts.removePassword, className: 'plain' })}`
    : html`<p>${texts.noPassword} <a href="${root}security/password">${texts.addPassword}</a></p>`
}
</section>
${state.factors}
${sessionsSection(context, state.sessions)}
${state.sections}`,
  }
}

/** The page of a button that was pressed twice, or on two devices: what it removes is not there any more. */
export const alreadyGonePage = (context: PageContext, errors: FieldErrors): Page => {
  const { texts } = context
  const text = sentencesOf(context, errors)
  return messagePage(context, { title: texts.alreadyGone, text, next: ['security', texts.backToSecurity] })
}

export interface PasswordState {
  readonly email: string
  readonly minLength: number
  /** Whether there is a current one. */
  readonly hasPassword: boolean
  readonly hasCodes: boolean
  readonly errors?: FieldErrors
}

export const changePasswordPage = (
  context: PageContext,
  { email, minLength, hasPassword, hasCodes, errors = NO_ERRORS }: PasswordState,
): Page => {
  const { texts } = context
  const form = new Form(context, errors)
  const fields = [
    hasPassword &&
      form.field({
        name: 'currentPassword',
        label: texts.currentPassword,
        type: 'password',
        autocomplete: 'current-password',
      }),
    form.field({
      name: 'newPassword',
      label: texts.newPassword,
      type: 'password',
      hint: fill(texts.passwordHint, { length: minLength }),
      autocomplete: 'new-password',
    }),
    hasCodes && form.field(oneTimeCodeField(context)),
  ]
  return formPage(context, form, {
    title: texts.reset,
    isSignedIn: true,
    texts: [html`<p>${texts.resetText}</p>`],
    action: 'security/password',
    fields: [usernameField(email), fields],
    button: texts.resetButton,
    next: backToSecurity(context),
  })
}

/** The page for a user who can only prove their identity by signing in. */
export const signInAgainPage = (context: PageContext): Page => {
  const { texts } = context
  return messagePage(context, {
    title: texts.proof,
    text: texts.proofSignIn,
    next: ['sign-in', texts.signIn],
  })
}

export interface ProofState {
  /** The URL of the form, relative to the service. */
  readonly action: string
  /** Fields of the action that is repeated. */
  readonly fields: Readonly<Record<string, string>>
  readonly email: string
  readonly hasCodes: boolean
  readonly errors?: FieldErrors
}

export const proofPage = (
  context: PageContext,
  { action, fields, email, hasCodes, errors = NO_ERRORS }: ProofState,
): Page => {
  const { texts } = context
  const form = new Form(context, errors)
  const field = form.field(
    hasCodes
      ? oneTimeCodeField(context)
      : {
          name: 'password',
          label: texts.password,
          type: 'password',
          autocomplete: 'current-password',
        },
  )
  const repeated = Object.entries(fields).map(([name, value]) => hiddenField(name, value))
  return formPage(context, form, {
    title: texts.proof,
    isSignedIn: true,
    texts: [html`<p>${hasCodes ? texts.proofCode : texts.proofPassword}</p>`],
    action,
    fields: [repeated, usernameField(email), field],
    button: texts.proofButton,
    next: backToSecurity(context),
  })
}
