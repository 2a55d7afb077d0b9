/** The rows of cards on wide pages: what it is, its value, and what one can do. Each is an item of a list, see {@link rowList}. */
import { ACCOUNT_TEXTS } from './account-texts.ts'
import { type Html, type HtmlValue, html } from './html.ts'
import { type IconName, icon } from './icons.ts'
import type { PageContext } from './layout.ts'

export const rowList = (rows: readonly Html[]): Html => html`<ul class="card rows">
${rows}</ul>`

export const badge = (text: string, state: 'good' | 'warn' | 'brand' | 'bad' | '' = ''): Html =>
  html` <span class="badge ${state}">${text}</span>`

interface Row {
  readonly title: string
  readonly value: HtmlValue
  /** In small letters below the value. */
  readonly note?: HtmlValue
  /** A form of one button, or a link. */
  readonly action?: HtmlValue
}

const shownValue = ({ value, note }: Pick<Row, 'value' | 'note'>): Html =>
  html`<span>${value}${note && html`<small>${note}</small>`}</span>`

export const row = ({ title, action, ...shown }: Row): Html =>
  html`<li class="row"><span>${title}</span>${shownValue(shown)}${action && html`<span class="buttons">${action}</span>`}</li>
`

interface FormRow extends Omit<Row, 'action'> {
  /** What the row opens: by default "Change". */
  readonly open?: string
  readonly isDangerous?: boolean
  /** Whether it is open at first, such as with errors. */
  readonly isOpen?: boolean
  readonly form: Html
}

/** A row that opens a form in its place, without script. */
export const formRow = (
  context: PageContext,
  { title, open, isDangerous, isOpen, form, ...shown }: FormRow,
): Html => {
  const own = context.textsOf(ACCOUNT_TEXTS)
  return html`<li><details class="row"${isOpen && html` open`}><summary><span>${title}</span>${shownValue(shown)}<span class="act${isDangerous && ' danger'}"><span class="closed">${open ?? own.change}</span><span class="opened">${own.cancel}</span></span></summary>
${form}
</details></li>
`
}

interface Item {
  readonly icon?: IconName
  /** In place of an icon. */
  readonly avatar?: Html
  readonly title: HtmlValue
  readonly note?: HtmlValue
  readonly action?: HtmlValue
}

/** One of several of a kind, such as a session. */
export const itemRow = ({ icon: name, avatar, title, note, action }: Item): Html =>
  html`<li class="row-item">${name !== undefined && icon(name)}${avatar}<span class="grow"><strong>${title}</strong>${note && html`<small>${note}</small>`}</span>${action}</li>
`

/** A link that looks like a button, at the end of a list. @param path below the service. */
export const linkRow = ({ root }: PageContext, path: string, text: string, iconName?: IconName): Html =>
  html`<li class="row-item"><a class="button" href="${root}${path}">${iconName !== undefined && icon(iconName)}${text}</a></li>
`
