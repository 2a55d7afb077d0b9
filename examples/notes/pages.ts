/** Notes on the hosted pages: a section of the security page, and a page of their own. */
import {
  backToSecurity,
  button,
  defineTexts,
  type FeaturePages,
  html,
  type Page,
  type PageContext,
  time,
} from '#http/pages/feature-pages'

interface Note {
  readonly id: string
  readonly text: string
  readonly updatedAt: string
}

const TEXTS = defineTexts('notes', {
  en: {
    title: 'Notes',
    none: 'You have no notes.',
    show: 'Show your notes',
    remove: 'Remove',
    errors: { noteNotFound: 'This note is removed already.' },
    notices: { noteRemoved: 'The note is removed.' },
  },
  de: {
    title: 'Notizen',
    none: 'Sie haben keine Notizen.',
    show: 'Notizen zeigen',
    remove: 'Entfernen',
    errors: { noteNotFound: 'Diese Notiz ist schon entfernt.' },
    notices: { noteRemoved: 'Die Notiz ist entfernt.' },
  },
})

export const notesPage = (context: PageContext, notes: readonly Note[]): Page => {
  const texts = context.textsOf(TEXTS)
  const item = ({ id, text, updatedAt }: Note) => html`<li><div>
<p>${text}</p>
<p class="muted">${time(context, updatedAt)}</p>
</div>${button(context, { action: 'security/notes/remove', text: texts.remove, className: 'danger', id })}</li>`
  return {
    title: texts.title,
    isSignedIn: true,
    isWide: true,
    body: html`<h1>${texts.title}</h1>
${notes.length === 0 ? html`<p>${texts.none}</p>` : html`<ul class="list">${notes.map(item)}</ul>`}
${backToSecurity(context)}`,
  }
}

export default {
  texts: TEXTS,
  security: {
    path: '/notes?limit=1',
    section(context) {
      const texts = context.textsOf(TEXTS)
      return html`<section>
<h2>${texts.title}</h2>
<p><a href="${context.root}security/notes">${texts.show}</a></p>
</section>`
    },
  },
} satisfies FeaturePages
