/** Pages of signed-in users: sessions, password. Features add sections. */

import type { FieldErrors } from '#base/errors'
import { fill } from '#base/texts'
import { OWN_FIELDS, USER_FIELDS } from '#core/users/fields'
import { ACCOUNT_TEXTS } from './account-texts.ts'
import type { OwnSection, SharedSection } from './feature-pages.ts'
import { type Html, html } from './html.ts'
import type { IconName } from './icons.ts'
import {
  ago,
  avatar,
  backToSecurity,
  button,
  deviceOf,
  Form,
  formPage,
  fullName,
  hiddenField,
  type Link,
  messagePage,
  NO_ERRORS,
  noticeOf,
  type Page,
  type PageContext,
  time,
  usernameField,
} from './layout.ts'
import { sentencesOf } from './messages.ts'
import { SIGN_IN_AGAIN, withReturn } from './return-links.ts'
import { badge, formRow, itemRow, row, rowList } from './rows.ts'
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

/** The names in the form of the account page, which a user may clear. Those of a team are texts without a translation. */
const NAMES = ['firstName', 'lastName'] as const

/** Texts that a team has added to users, which they write themselves. */
const TEAM_FIELDS = OWN_FIELDS.filter(
  field =>
    USER_FIELDS[field].kind.name === 'text' &&
    field !== 'locale' &&
    !(NAMES as readonly string[]).includes(field),
)

/** The fields of the form about the profile. */
export const PROFILE_FIELDS: readonly string[] = [...NAMES, ...TEAM_FIELDS]

type AccountForm = 'profile' | 'email' | 'language' | 'close'

/** What a form was sent with, to show it again. */
export interface SentForm {
  readonly form: AccountForm
  readonly values: Readonly<Record<string, string>>
  readonly errors: FieldErrors
}

export interface SecurityState {
  readonly account: {
    readonly email: string
    readonly emailVerified: boolean
    readonly firstName: string | null
    readonly lastName: string | null
    readonly locale: string | null
  }
  readonly sessions: readonly Session[]
  readonly hasPassword: boolean
  /** The rows of features. */
  readonly added: readonly { readonly section: SharedSection | OwnSection; readonly rows: readonly Html[] }[]
  /** Text that is shown once, after a redirect. */
  readonly notice: string | undefined
  readonly sent?: SentForm
}

interface Section {
  readonly id: string
  readonly title: string
  readonly text?: string | undefined
  readonly rows: readonly Html[]
}

const formOf = (context: PageContext, { sent }: SecurityState, name: AccountForm): Form =>
  new Form(context, sent?.form === name ? sent.errors : NO_ERRORS, `${name}-`)

const nameRow = (context: PageContext, state: SecurityState, form: Form): Html => {
  const { texts, root } = context
  const own = context.textsOf(ACCOUNT_TEXTS)
  const account = state.account as unknown as Readonly<Record<string, string | null>>
  const values = state.sent?.form === 'profile' ? state.sent.values : account
  const field = (name: string, label: string, autocomplete: string) =>
    form.field({ name, label, value: values[name] ?? '', autocomplete, isOptional: true })
  const fields = html`<div class="pair">${field('firstName', texts.firstName, 'given-name')}${field('lastName', texts.lastName, 'family-name')}</div>
${TEAM_FIELDS.map(name => field(name, labelOf(name), 'off'))}`
  return formRow(context, {
    title: own.name,
    value: fullName(state.account) || html`<span class="muted">${own.none}</span>`,
    note: TEAM_FIELDS.flatMap(name =>
      account[name] == null ? [] : `${labelOf(name)}: ${account[name]}`,
    ).join(' · '),
    isOpen: form.hasErrors,
    form: html`<form method="post" action="${root}security/profile">
${fields}
<div class="buttons"><button class="primary">${own.saveName}</button></div>
</form>`,
  })
}

/** The name of a team's field for people: `jobTitle` is "Job title". */
const labelOf = (name: string): string => {
  const words = name.replaceAll(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const emailRows = (context: PageContext, { account, sent }: SecurityState, form: Form): readonly Html[] => {
  const { texts, root } = context
  const own = context.textsOf(ACCOUNT_TEXTS)
  const { email, emailVerified } = account
  const field = form.field({
    name: 'email',
    label: own.newEmail,
    type: 'email',
    value: sent?.form === 'email' ? sent.values.email : undefined,
    hint: own.newEmailHint,
    autocomplete: 'email',
  })
  return [
    formRow(context, {
      title: texts.email,
      value: html`<span class="break">${email}</span>${emailVerified ? badge(own.confirmed, 'good') : badge(own.notConfirmed, 'warn')}`,
      isOpen: form.hasErrors,
      form: html`<form method="post" action="${root}security/email">
${field}
<div class="buttons"><button class="primary">${own.sendLink}</button></div>
</form>`,
    }),
    ...(emailVerified
      ? []
      : [
          itemRow({
            icon: 'mail',
            title: texts.emailNotConfirmed,
            action: button(context, { action: 'security/verify-email', text: texts.resendButton }),
          }),
        ]),
  ]
}

/** The name of a language in itself. */
const languageName = (tag: string): string => new Intl.DisplayNames(tag, { type: 'language' }).of(tag) ?? tag

const languageRow = (context: PageContext, { account, sent }: SecurityState, form: Form): Html => {
  const own = context.textsOf(ACCOUNT_TEXTS)
  const { locale } = account
  const tags = [...new Set([...(locale === null ? [] : [locale]), ...context.languages])]
  const field = form.choice({
    name: 'locale',
    label: own.languageLabel,
    value: sent?.form === 'language' ? sent.values.locale : (locale ?? ''),
    options: [['', own.languageOfBrowser], ...tags.map(tag => [tag, languageName(tag)] as const)],
  })
  return formRow(context, {
    title: own.language,
    value: locale === null ? html`<span class="muted">${own.languageOfBrowser}</span>` : languageName(locale),
    isOpen: form.hasErrors,
    form: html`<form method="post" action="${context.root}security/language">
${field}
<div class="buttons"><button class="primary">${own.saveLanguage}</button></div>
</form>`,
  })
}

const passwordRow = (context: PageContext, hasPassword: boolean): Html => {
  const { texts, root } = context
  const own = context.textsOf(ACCOUNT_TEXTS)
  return row({
    title: texts.password,
    value: hasPassword ? own.passwordSet : html`<span class="muted">${own.passwordNotSet}</span>`,
    action: html`${
      hasPassword &&
      button(context, {
        action: 'security/password/remove',
        text: own.remove,
        label: texts.removePassword,
        className: 'quiet',
      })
    }<a class="button" href="${root}security/password" aria-label="${hasPassword ? texts.changePasswordButton : texts.addPassword}">${hasPassword ? own.change : own.choosePassword}</a>`,
  })
}

const iconOf = (userAgent: string | null): IconName => {
  if (/\b(?:Android|iPhone|iPad)\b/.test(userAgent ?? '')) return 'phone'
  return /^Mozilla\//.test(userAgent ?? '') ? 'computer' : 'terminal'
}

const sessionRow = (context: PageContext, session: Session): Html => {
  const { texts } = context
  const own = context.textsOf(ACCOUNT_TEXTS)
  const device = deviceOf(context, session.userAgent)
  return itemRow({
    icon: iconOf(session.userAgent),
    title: html`${device}${session.current && badge(own.thisDevice, 'brand')}${session.impersonated && badge(texts.impersonatedSession, 'warn')}`,
    note: html`${session.ip !== null && html`${session.ip} · `}${texts.sessionSince} ${time(context, session.createdAt)} · ${texts.lastUsed} ${ago(context, session.lastRequestAt)}`,
    action: button(context, {
      action: 'security/sessions/end',
      text: own.signOutDevice,
      label: fill(own.signOutDeviceOf, { device }),
      id: session.id,
    }),
  })
}

const sessionRows = (context: PageContext, sessions: readonly Session[]): readonly Html[] => {
  const text = context.textsOf(ACCOUNT_TEXTS).signOutOthers
  const others = html`<li class="row-item">${button(context, { action: 'security/sessions/end-others', text, className: 'danger' })}</li>\n`
  return [...sessions.map(session => sessionRow(context, session)), ...(sessions.length > 1 ? [others] : [])]
}

const closeRow = (context: PageContext, { account: { email } }: SecurityState, form: Form): Html => {
  const own = context.textsOf(ACCOUNT_TEXTS)
  return formRow(context, {
    title: own.close,
    value: html`<span class="muted">${own.closeFinal}</span>`,
    open: own.close,
    isDangerous: true,
    isOpen: form.hasErrors,
    form: html`<form method="post" action="${context.root}security/close">
<p>${own.closeExplanation}</p>
<label class="check"><input type="checkbox" name="confirmed" required><span class="break">${fill(own.closeConfirm, { email })}</span></label>
<div class="buttons"><button class="danger filled">${own.closeButton}</button></div>
</form>`,
  })
}

const sectionsOf = (context: PageContext, state: SecurityState): readonly Section[] => {
  const own = context.textsOf(ACCOUNT_TEXTS)
  const { product } = context
  const addedTo = (shared: SharedSection) =>
    state.added.flatMap(({ section, rows }) => (section === shared ? rows : []))
  const ofFeatures = state.added.flatMap(({ section, rows }, index) =>
    typeof section === 'string'
      ? []
      : [{ id: `section-${index}`, title: section.title(context), text: section.text?.(context), rows }],
  )
  const [profile, email, language, close] = (['profile', 'email', 'language', 'close'] as const).map(name =>
    formOf(context, state, name),
  ) as [Form, Form, Form, Form]
  const all: readonly Section[] = [
    {
      id: 'profile',
      title: own.profile,
      text: fill(own.profileText, { product }),
      rows: [
        nameRow(context, state, profile),
        ...emailRows(context, state, email),
        languageRow(context, state, language),
      ],
    },
    {
      id: 'sign-in',
      title: own.signIn,
      text: own.signInText,
      rows: [passwordRow(context, state.hasPassword), ...addedTo('signIn')],
    },
    { id: 'second-step', title: own.secondStep, text: own.secondStepText, rows: addedTo('secondStep') },
    { id: 'devices', title: own.devices, text: own.devicesText, rows: sessionRows(context, state.sessions) },
    {
      id: 'applications',
      title: own.applications,
      text: own.applicationsText,
      rows: addedTo('applications'),
    },
    ...ofFeatures,
    { id: 'close', title: own.close, text: own.closeText, rows: [closeRow(context, state, close)] },
  ]
  return all.filter(({ rows }) => rows.length > 0)
}

const sectionOf = ({ id, title, text, rows }: Section): Html =>
  html`<section id="${id}" aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>${text !== undefined && html`<p>${text}</p>`}
${rowList(rows)}
</section>
`

export const securityPage = (context: PageContext, state: SecurityState): Page => {
  const { account, notice, sent } = state
  const { email } = account
  const name = fullName(account)
  const sections = sectionsOf(context, state)
  const own = context.textsOf(ACCOUNT_TEXTS)
  const errors = new Form(context, sent?.errors ?? NO_ERRORS, `${sent?.form ?? ''}-`)
  return {
    title: own.yourAccount,
    isWide: true,
    isSignedIn: true,
    hasScripts: true,
    hasErrors: errors.hasErrors,
    sections: sections.map(({ id, title }): Link => [`#${id}`, title]),
    body: html`<div class="identity">${avatar(name || email, 'large')}<div><h1>${name || own.yourAccount}</h1><p class="break">${email}</p></div></div>
${noticeOf(notice)}
${errors.summary()}
${sections.map(sectionOf)}`,
  }
}

/** The page after an account was closed. */
export const accountClosedPage = (context: PageContext): Page => {
  const { closed: title, closedText: text } = context.textsOf(ACCOUNT_TEXTS)
  return {
    ...messagePage(context, { title, text, next: ['sign-in', context.texts.signIn] }),
    isSignedIn: false,
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
    next: [withReturn(`sign-in?${SIGN_IN_AGAIN}`, context), texts.signIn],
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
