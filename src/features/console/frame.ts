/** What surrounds the pages of the console: the menu, which is a drawer on a phone, and who is signed in. */
import {
  type ConsoleContext,
  type ConsolePage,
  type Html,
  html,
  type IconName,
  icon,
  type Page,
} from '#http/pages/feature-pages'
import { logoOf } from '#http/pages/layout'
import { TEXTS } from './texts.ts'

export const textsOf = ({ language }: Pick<ConsoleContext, 'language'>) =>
  language === 'de' ? TEXTS.de : TEXTS.en

/** Who is signed in to the console. */
export interface Holder {
  /** The name of a key, or the e-mail of an administrator. */
  readonly name: string
  readonly isKey: boolean
}

interface Frame {
  readonly title: string
  readonly body: Html
  /** The pages of the menu. */
  readonly pages: readonly ConsolePage[]
  /** The path of the page in the menu. */
  readonly current?: string
  readonly holder: Holder
  readonly isForm?: boolean
  readonly hasErrors?: boolean
}

const GROUPS = ['people', 'connections', 'operation'] as const

/** Up to two letters for a picture of somebody. */
export const initials = (name: string): string =>
  name
    .split(/[^\p{L}\p{N}]+/u)
    .filter(part => part !== '')
    .slice(0, 2)
    .map(part => [...part][0] ?? '')
    .join('')
    .toUpperCase()

const menuOf = (context: ConsoleContext, { pages, current = '' }: Frame): Html => {
  const { root, say, can } = context
  const texts = textsOf(context)
  const entry = (path: string, text: string, name: IconName): Html =>
    html`<li><a href="${root}console${path && `/${path}`}"${path === current && html` aria-current="page"`}>${icon(name)}${text}</a></li>`
  const shown = pages.filter(({ list, item }) => can((list ?? item)?.scope ?? ''))
  const part = (group: (typeof GROUPS)[number]): Html | false => {
    const entries = shown.filter(page => (page.group ?? 'operation') === group)
    return (
      entries.length > 0 &&
      html`<div><h2 id="menu-${group}">${texts[group]}</h2><ul aria-labelledby="menu-${group}">${entries.map(
        page => entry(page.path, say(page.title), page.icon ?? 'page'),
      )}</ul></div>
`
    )
  }
  return html`<div class="sections">
<div><ul>${entry('', texts.overview, 'overview')}</ul></div>
${GROUPS.map(part)}</div>`
}

const brandOf = (context: ConsoleContext): Html =>
  html`<a class="brand" href="${context.root}console">${logoOf(context)} <span class="where">${textsOf(context).console}</span></a>`

/** A page of the console, for those who are signed in. */
export const framed = (context: ConsoleContext, frame: Frame): Page => {
  const { root } = context
  const { title, body, holder, isForm = false, hasErrors = false } = frame
  const texts = textsOf(context)
  const kind = holder.isKey ? texts.adminKey : texts.administrator
  return {
    title: `${title} – ${texts.console}`,
    body,
    hasErrors,
    assetsOf: 'console',
    frame: html`<a class="skip" href="#content">${texts.skip}</a>
<header class="console-bar">
<button type="button" class="quiet square" popovertarget="sidebar" aria-label="${texts.menu}">${icon('menu')}</button>
${brandOf(context)}
</header>
<nav class="sidebar" id="sidebar" popover aria-label="${texts.menu}">
${brandOf(context)}
${menuOf(context, frame)}
<button type="button" class="me" popovertarget="me"><span class="avatar" aria-hidden="true">${initials(holder.name)}</span><span><bdi>${holder.name}</bdi><small>${kind}</small></span>${icon('updown')}</button>
<div class="menu" id="me" popover>
<p class="menu-head"><strong><bdi>${holder.name}</bdi></strong><br><span class="muted small">${kind}</span></p>
<ul><li class="rule"><form method="post" action="${root}console/sign-out"><button>${icon('signOut')}${texts.signOut}</button></form></li></ul>
</div>
</nav>
<main id="content"${isForm && html` class="form-page"`}>
${body}
</main>`,
  }
}
