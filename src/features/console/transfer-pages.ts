/** The pages for imports and exports of users: forms, and the progress of an import, which arrives while it runs. */
import type { FieldErrors } from '#base/errors'
import { fill } from '#base/texts'
import { type ConsoleContext, Form, type Html, html, icon, type Text } from '#http/pages/feature-pages'
import { sentencesOf } from '#http/pages/messages'
import { textsOf } from './frame.ts'
import { type ConfirmState, crumbsOf, proofField } from './render.ts'

/** Megabytes of a file. */
export const MAX_FILE_MEGABYTES = 16

export const USERS: Text = { en: 'Users', de: 'Nutzer' }
export const IMPORT: Text = { en: 'Import users', de: 'Nutzer importieren' }
export const EXPORT: Text = { en: 'Export users', de: 'Nutzer exportieren' }

interface TransferForm {
  readonly proof: ConfirmState['proof']
  readonly errors: FieldErrors
}

const pageHead = (context: ConsoleContext, title: Text): Html => html`<div class="page-head">
${crumbsOf(context, [
  ['users', context.say(USERS)],
  [null, context.say(title)],
])}
<div><h1>${context.say(title)}</h1></div>
</div>`

const formActions = (context: ConsoleContext, title: Text): Html =>
  html`<div class="form-actions"><a class="button" href="${context.root}console/users">${textsOf(context).cancel}</a><button class="primary">${context.say(title)}</button></div>`

export const importBody = (context: ConsoleContext, { proof, errors }: TransferForm): Html => {
  const texts = textsOf(context).transfers
  const form = new Form(context, errors)
  const proved = proofField(context, form, proof)
  return html`${pageHead(context, IMPORT)}
${form.summary()}
<form class="card" method="post" enctype="multipart/form-data" action="${context.root}console/users/import"><div class="card-body stack-wide">
<p>${texts.importText}</p>
<pre class="sample">{"email":"ann@example.com","firstName":"Ann","emailVerified":true}
{"email":"omar@example.com","roles":["editor"]}</pre>
<div class="field"><label for="file">${texts.file}</label><p class="hint" id="file-hint">${fill(texts.fileHint, { size: MAX_FILE_MEGABYTES })}</p><input type="file" id="file" name="file" accept=".ndjson,.jsonl,.json,.txt" aria-describedby="file-hint" required></div>
${proved}
${formActions(context, IMPORT)}
</div></form>`
}

export const exportBody = (
  context: ConsoleContext,
  { proof, errors, approximateUsers }: TransferForm & { readonly approximateUsers: number | null },
): Html => {
  const texts = textsOf(context).transfers
  const form = new Form(context, errors)
  const hashes = form.check({
    name: 'passwordHashes',
    isChecked: false,
    label: html`<span>${texts.withHashes}<span class="hint">${texts.withHashesHint}</span></span>`,
  })
  const proved = proofField(context, form, proof)
  return html`${pageHead(context, EXPORT)}
${form.summary()}
<form class="card" method="post" action="${context.root}console/users/export"><div class="card-body stack-wide">
<p>${texts.exportText}${
    approximateUsers !== null &&
    html` ${fill(texts.exportCount, { count: approximateUsers.toLocaleString(context.language) })}`
  }</p>
${hashes}
${proved}
${formActions(context, EXPORT)}
</div></form>`
}

/** What an import has done so far. */
export interface Progress {
  /** Lines of the file, and those that were read. */
  readonly lines: number
  readonly read: number
  readonly created: number
  readonly exists: number
  readonly failed: number
}

/** Around {@link progressLine}, which replace each other. */
export const progressBody = (context: ConsoleContext, arriving: Html): Html =>
  html`${pageHead(context, IMPORT)}
${arriving}`

export const progressStart = (context: ConsoleContext): Html =>
  html`<section class="card"><div class="card-body stack"><div class="progress" role="status" aria-label="${textsOf(context).transfers.progress}">`

const countsOf = (context: ConsoleContext, { created, exists, failed }: Progress): string => {
  const [c, e, f] = [created, exists, failed].map(count => count.toLocaleString(context.language))
  return fill(textsOf(context).transfers.counts, { created: c ?? '', exists: e ?? '', failed: f ?? '' })
}

export const progressLine = (context: ConsoleContext, progress: Progress): Html => {
  const { lines, read } = progress
  const { language } = context
  const text = fill(textsOf(context).transfers.read, {
    read: read.toLocaleString(language),
    lines: lines.toLocaleString(language),
  })
  return html`<p><progress max="${Math.max(lines, 1)}" value="${read}" aria-hidden="true"></progress><span>${text}: ${countsOf(context, progress)}</span></p>
`
}

/** A line of the file that was not imported. */
export interface FailedLine {
  readonly line: number
  readonly errors: FieldErrors
}

export interface ImportEnd {
  readonly progress: Progress
  readonly failures: readonly FailedLine[]
  /** Why it has stopped early; `null`: it is complete. */
  readonly errors: FieldErrors | null
}

const failureTable = (context: ConsoleContext, { progress, failures }: ImportEnd): Html | false => {
  const texts = textsOf(context).transfers
  const left = progress.failed - failures.length
  const line = ({ line: number, errors }: FailedLine): Html =>
    html`<tr><th scope="row">${number}</th><td>${Object.entries(errors).map(
      ([field, messages]) =>
        html`${field !== 'global' && html`<code>${field}</code> `}${sentencesOf(context, { [field]: messages })} `,
    )}</td></tr>
`
  return (
    failures.length > 0 &&
    html`<section class="card table failures"><table>
<thead><tr><th scope="col">${texts.line}</th><th scope="col">${texts.problem}</th></tr></thead>
<tbody>
${failures.map(line)}</tbody>
</table>${left > 0 && html`<p class="table-foot">${fill(texts.moreFailures, { count: left.toLocaleString(context.language) })}</p>`}</section>
`
  )
}

export const progressEnd = (context: ConsoleContext, end: ImportEnd): Html => {
  const { root } = context
  const texts = textsOf(context).transfers
  const { errors, progress } = end
  const isComplete = errors === null
  return html`</div>
<div class="notice ${isComplete ? 'good' : 'bad'}" role="${isComplete ? 'status' : 'alert'}">${icon(isComplete ? 'check' : 'warning')}<div><strong>${
    isComplete ? texts.finished : texts.stopped
  }</strong><br>${isComplete ? countsOf(context, progress) : html`${sentencesOf(context, errors)} ${texts.stoppedText}`}</div></div>
<div class="buttons"><a class="button primary" href="${root}console/users">${context.say(USERS)}</a><a class="button" href="${root}console/users/import">${texts.another}</a></div>
</div></section>
${failureTable(context, end)}`
}
