/** The two shapes of a mail, from one list of blocks: neither can say what the other does not. */

import { EMAIL_CHANGE, PASSWORD_RESET, VERIFICATION } from '../accounts/email-token.ts'
import type { Mails } from '../accounts/mails.ts'
import type { Content } from './transports.ts'

export type Block = string | { readonly link: string; readonly label: string } | { readonly code: string }

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, character => ENTITIES[character] ?? '')

const asText = (block: Block): string => {
  if (typeof block === 'string') return block
  return 'link' in block ? `${block.label}:\n${block.link}` : `    ${block.code}`
}

const asHtml = (block: Block): string => {
  if (typeof block === 'string') return `<p>${escapeHtml(block)}</p>`
  if ('code' in block)
    return `<pre style="white-space:pre-wrap;word-break:break-all">${escapeHtml(block.code)}</pre>`
  return `<p><a href="${escapeHtml(block.link)}">${escapeHtml(block.label)}</a></p>`
}

const STYLE = 'max-width:36em;margin:0 auto;padding:1em;font:16px/1.5 sans-serif'

/** @param subject the same for everybody: what people choose does not stand in a header. */
export const layOut = (subject: string, blocks: readonly Block[]): Content => ({
  subject,
  text: `${blocks.map(asText).join('\n\n')}\n`,
  html: [
    '<!doctype html>',
    `<html lang="en-GB"><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="${STYLE}">`,
    ...blocks.map(asHtml),
    '</body></html>\n',
  ].join('\n'),
})

/** The mails, one function each. */

type Values<Parameters> = Parameters extends [to: string, ...rest: infer Rest] ? Rest : never

export type Templates = {
  readonly [Kind in keyof Mails]: (...values: Values<Parameters<Mails[Kind]>>) => Content
}

export interface Places {
  /** Where clients reach the service. */
  readonly publicUrl: string
  /** Where people are sent. */
  readonly webUrl: string
}

/** A page below `base`, whose own path and query stay. */
const linkTo = (base: string, path: string, token: string): string => {
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/$/, '') + path
  url.searchParams.set('token', token)
  return url.href
}

const hours = (milliseconds: number): string => {
  const count = milliseconds / 3_600_000
  return count === 1 ? 'one hour' : `${count} hours`
}

export const templates = ({ publicUrl, webUrl }: Places): Templates => {
  const site = new URL(publicUrl).host
  const mail = (subject: string, ...blocks: Block[]): Content =>
    layOut(subject, ['Hello,', ...blocks, `This mail was sent by ${site}. Nobody reads answers to it.`])
  const byApi = (path: string, token: string): Block[] => [
    `Without a browser, send this token to POST ${publicUrl}${path}:`,
    { code: token },
  ]
  const verifyEmail = (label: string, token: string): Block[] => [
    { link: linkTo(publicUrl, '/account/verify-email', token), label },
    ...byApi('/account/verify-email', token),
  ]
  const resetPassword = (token: string): Block[] => [
    { link: linkTo(webUrl, '/reset-password', token), label: 'Choose another password' },
    ...byApi('/account/reset-password', token),
  ]
  const notYou: Block = { link: webUrl, label: 'If it was not you, choose another password at once' }

  return {
    verification: token =>
      mail(
        'Confirm your e-mail address',
        `This address was given for an account at ${site}. If it was you, please confirm that it is yours.`,
        ...verifyEmail('Confirm this address', token),
        `The link works for ${hours(VERIFICATION)}. If it was not you, there is nothing to do.`,
      ),
    newEmail: token =>
      mail(
        'Confirm your new e-mail address',
        `This is to be the new address of an account at ${site}. It changes once you have confirmed that it is yours.`,
        ...verifyEmail('Use this address', token),
        `The link works for ${hours(EMAIL_CHANGE)}. If you did not ask for it, there is nothing to do.`,
      ),
    emailChangeRequested: newEmail =>
      mail(
        'Your e-mail address is to be changed',
        `Your account at ${site} is to have another address: ${newEmail}. It changes once that one is confirmed.`,
        'If it was you, there is nothing to do.',
        notYou,
      ),
    emailChanged: newEmail =>
      mail(
        'Your e-mail address has been changed',
        `Your account at ${site} now has another address: ${newEmail}. This one is no longer used.`,
        'If it was not you, please tell whoever runs the service.',
      ),
    passwordReset: token =>
      mail(
        'Choose another password',
        `Somebody has asked for another password for your account at ${site}.`,
        ...resetPassword(token),
        `The link works once, for ${hours(PASSWORD_RESET)}. If it was not you, there is nothing to do: your password stays.`,
      ),
    passwordChanged: () =>
      mail(
        'Your password has been changed',
        `The password of your account at ${site} has been changed, and whoever was signed in with the old one is signed out.`,
        'If it was you, there is nothing to do.',
        notYou,
      ),
    accountExists: token =>
      mail(
        'You have an account already',
        `Somebody wanted to use this address for an account at ${site}, where it belongs to yours.`,
        'If it was you, sign in. If you have forgotten your password, choose another one:',
        ...resetPassword(token),
        `The link works once, for ${hours(PASSWORD_RESET)}. If it was not you, there is nothing to do: nothing has changed.`,
      ),
    accountDeleted: () =>
      mail(
        'Your account has been deleted',
        `Your account at ${site} has been deleted, with what it said about you.`,
        'If it was not you, please tell whoever runs the service.',
      ),
  }
}
