/** Notes on the hosted pages: a section of the security page, and a page of their own. */
import {
  backToSecurity,
  button,
  defineTexts,
  type FeaturePages,
  html,
  itemRow,
  linkRow,
  type Page,
  type PageContext,
  rowList,
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
  const item = ({ id, text, updatedAt }: Note) =>
    itemRow({
      title: text,
      note: time(context, updatedAt),
      action: button(context, { action: 'security/notes/remove', text: texts.remove, id }),
    })
  return {
    title: texts.title,
    isSignedIn: true,
    isWide: true,
    body: html`<h1>${texts.title}</h1>
${notes.length === 0 ? html`<p>${texts.none}</p>` : rowList(notes.map(item))}
${backToSecurity(context)}`,
  }
}

export default {
  texts: TEXTS,
  security: {
    path: '/notes?limit=1',
    section: { title: ({ textsOf }) => textsOf(TEXTS).title },
    rows: context => [linkRow(context, 'security/notes', context.textsOf(TEXTS).show)],
  },
} satisfies FeaturePages
