/** The page that asks whether the user signs out, because a client wants it. */
import { fill } from '#base/texts'
import { html } from '#http/pages/html'
import { card, hiddenField, type Page, type PageContext } from '#http/pages/layout'
import type { LogoutParameters } from './logout.ts'
import { TEXTS } from './page-texts.ts'

interface LogoutState {
  /** `null`: the browser has sessions of several users. */
  readonly email: string | null
  /** The name of the client; `null`: it is not known. */
  readonly client: string | null
  readonly parameters: LogoutParameters
}

export const logoutPage = (context: PageContext, { email, client, parameters }: LogoutState): Page => {
  const own = context.textsOf(TEXTS).logout
  const { root, texts } = context
  const question = email === null ? texts.severalUsersText : fill(texts.flows.signOutText, { email })
  const kept = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [hiddenField(name, value)],
  )
  return {
    title: texts.flows.signOutTitle,
    body: card(
      texts.flows.signOutTitle,
      html`<p>${client !== null && `${fill(own.asked, { client })} `}${question}</p>`,
      html`<form class="stack" method="post" action="${root}oauth/logout/decision">${kept}<button class="primary block">${texts.signOut}</button></form>`,
      html`<p><a href="${root}security">${texts.flows.staySignedIn}</a></p>`,
    ),
  }
}
