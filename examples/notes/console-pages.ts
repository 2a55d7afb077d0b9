/** Notes on the page of a user in the console: when they were added. */
import { type ConsoleParts, html, textField, timeField } from '#http/pages/feature-pages'

export default {
  userSections: [
    {
      name: 'notes',
      title: { en: 'Added notes', de: 'Hinzugefügte Notizen' },
      scope: 'events:read',
      api: '/admin/events?limit=10&userId=:id&type=note.created',
      columns: [
        timeField({ en: 'Added', de: 'Hinzugefügt' }, 'at'),
        { label: { en: 'Note', de: 'Notiz' }, value: ({ details }) => html`<code>${details.note}</code>` },
        textField({ en: 'Address', de: 'Adresse' }, 'ip'),
      ],
      empty: { en: 'There is no note.', de: 'Es gibt keine Notiz.' },
      more: id => `events?userId=${id}&type=note.created`,
    },
  ],
} satisfies ConsoleParts
