/** Icons of the pages: lines on a square of 24, in the colour of the text. */
import { Html } from './html.ts'

const PATHS = {
  back: '<path d="M19 12H5M11 6l-6 6 6 6"/>',
  brokenLink: '<path d="m9 15-2 2a3.5 3.5 0 0 1-5-5l3-3M15 9l2-2a3.5 3.5 0 0 1 5 5l-3 3M8 8l8 8"/>',
  check: '<path d="m5 12.5 4.5 4.5L19 7.5"/>',
  computer: '<rect x="4.5" y="5" width="15" height="10.5" rx="1.5"/><path d="M2.5 19h19"/>',
  copy: '<rect x="8" y="8" width="12" height="12" rx="2"/><path d="M16 8V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h2"/>',
  download: '<path d="M12 4v11M7 11l5 5 5-5M4.5 20h15"/>',
  eye: '<path d="M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12z"/><circle cx="12" cy="12" r="2.75"/>',
  key: '<circle cx="8" cy="15" r="4"/><path d="m11 12 9-9M16 7l3 3"/>',
  mail: '<rect x="3" y="5" width="18" height="14" rx="2"/><path d="m3.5 7 8.5 6 8.5-6"/>',
  passkey:
    '<circle cx="9.5" cy="7.5" r="4"/><path d="M2.5 20.5a7 7 0 0 1 10.4-6.1"/><circle cx="17.5" cy="13.5" r="3"/><path d="M17.5 16.5v5l1.75-1.5M17.5 19h1.5"/>',
  phone: '<rect x="7" y="2.5" width="10" height="19" rx="2"/><path d="M11 18.5h2"/>',
  plus: '<path d="M12 5v14M5 12h14"/>',
  print:
    '<path d="M7 9V3.5h10V9M7 17H4.5a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1h15a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H17M7 14h10v6.5H7z"/>',
  shield:
    '<path d="M12 3 4.5 6v5.5c0 4.6 3.2 7.9 7.5 9.5 4.3-1.6 7.5-4.9 7.5-9.5V6z"/><path d="m8.8 12 2.3 2.3 4.2-4.4"/>',
  signOut: '<path d="M14 4H6a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h8M10.5 12H21M17.5 8.5 21 12l-3.5 3.5"/>',
  terminal: '<rect x="3" y="4.5" width="18" height="15" rx="2"/><path d="m7 9.5 3 2.5-3 2.5M13 15h4"/>',
  warning: '<path d="M12 4 2.5 20h19zM12 10v4.5M12 17.2v.1"/>',
} as const

export type IconName = keyof typeof PATHS

/** Decoration: text or a label beside it says the same. */
export const icon = (name: IconName): Html =>
  new Html(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${PATHS[name]}</svg>`)
