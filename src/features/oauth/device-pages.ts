/** The pages on which a user connects a device: the form for its code, what it asks for, and what was decided. */
import type { FieldErrors } from '#base/errors'
import { fill } from '#base/texts'
import { fillHtml, html } from '#http/pages/html'
import { icon } from '#http/pages/icons'
import {
  ago,
  cardWith,
  emblem,
  Form,
  formPage,
  hiddenField,
  type Page,
  type PageContext,
} from '#http/pages/layout'
import type { Client } from './client.ts'
import type { ShownDevice } from './device-authorizations.ts'
import { TEXTS } from './page-texts.ts'
import { ableTo, accountChip, type ConsentState, documents, handshake, unverified } from './pages.ts'

const warning = (context: PageContext) =>
  html`<p class="notice warn">${icon('warning')}<span>${context.textsOf(TEXTS).device.warning}</span></p>`

/** @param userCode as it was entered, or as a link has it. */
export const devicePage = (context: PageContext, userCode: string, errors: FieldErrors): Page => {
  const own = context.textsOf(TEXTS).device
  const form = new Form(context, errors)
  const field = form.field({
    ...{ name: 'user_code', label: own.code, hint: own.codeHint, autocomplete: 'off', value: userCode },
    ...{ isLetterCode: true, isFocused: !form.hasErrors },
  })
  return formPage(context, form, {
    title: own.title,
    emblem: emblem('terminal'),
    isSignedIn: true,
    texts: [html`<p>${own.intro}</p>`],
    action: 'device',
    fields: [field],
    button: own.find,
    after: [warning(context)],
  })
}

export interface DeviceState extends ShownDevice {
  readonly email: string
  /** The page with the form, for a user who signs in to another account. */
  readonly back: ConsentState['back']
  /** Whether the browser is in the network of the device. */
  readonly isSameNetwork: boolean
}

/** What the device asks for. */
export const deviceRequestPage = (context: PageContext, state: DeviceState): Page => {
  const texts = context.textsOf(TEXTS)
  const own = texts.device
  const { client, scopes, request, userCode, id, email, back, isSameNetwork } = state
  const title = fill(own.request, { client: client.name, product: context.product })
  const asked = fillHtml(own.asked, {
    code: html`<strong>${userCode}</strong>`,
    when: ago(context, new Date(request.requestedAt).toISOString()),
    address: html`<span class="break">${request.address ?? own.unknownAddress}</span>`,
  })
  return {
    title,
    isSignedIn: true,
    hasWideCard: true,
    body: html`<form class="card" method="post" action="${context.root}device/decision">
<div class="card-body">
<div class="heading middle">${handshake(context)}<h1>${title}</h1></div>
${accountChip(context, email, back)}
${ableTo(context, client, scopes)}
<p class="notice">${icon('info')}<span>${asked}${!isSameNetwork && html` ${own.otherNetwork}`}</span></p>
${unverified(context, state)}${warning(context)}
${hiddenField('request', id)}
<div class="pair">
<button name="decision" value="deny">${texts.deny}</button>
<button class="primary" name="decision" value="approve">${own.approve}</button>
</div>
</div>
${documents(context, client)}</form>`,
  }
}

/** @param client that the device has access with; `null`: it was denied. */
export const deviceDecidedPage = (context: PageContext, client: Pick<Client, 'name'> | null): Page => {
  const own = context.textsOf(TEXTS).device
  const title = client === null ? own.denied : own.approved
  const text = client === null ? own.deniedText : fill(own.approvedText, { client: client.name })
  return {
    title,
    isSignedIn: true,
    body: cardWith(
      { emblem: client === null ? emblem('block') : emblem('check', 'good') },
      title,
      html`<p>${text}</p>`,
    ),
  }
}
