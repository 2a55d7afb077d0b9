/** Icons of the pages: lines on a square of 24, in the colour of the text. */
import { Html } from './html.ts'

const PATHS = {
  application:
    '<rect x="3" y="3" width="8" height="8" rx="1.5"/><rect x="13" y="3" width="8" height="8" rx="1.5"/><rect x="3" y="13" width="8" height="8" rx="1.5"/><path d="M17 13.5v7M13.5 17h7"/>',
  ascending: '<path d="M12 19V5M7 10l5-5 5 5"/>',
  back: '<path d="M19 12H5M11 6l-6 6 6 6"/>',
  block: '<circle cx="12" cy="12" r="9"/><path d="m5.7 5.7 12.6 12.6"/>',
  brokenLink: '<path d="m9 15-2 2a3.5 3.5 0 0 1-5-5l3-3M15 9l2-2a3.5 3.5 0 0 1 5 5l-3 3M8 8l8 8"/>',
  check: '<path d="m5 12.5 4.5 4.5L19 7.5"/>',
  clock: '<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3.5 2"/>',
  close: '<path d="M6 6l12 12M18 6 6 18"/>',
  computer: '<rect x="4.5" y="5" width="15" height="10.5" rx="1.5"/><path d="M2.5 19h19"/>',
  copy: '<rect x="8" y="8" width="12" height="12" rx="2"/><path d="M16 8V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h2"/>',
  descending: '<path d="M12 5v14M7 14l5 5 5-5"/>',
  download: '<path d="M12 4v11M7 11l5 5 5-5M4.5 20h15"/>',
  edit: '<path d="M4 20h4L19.5 8.5a2.1 2.1 0 0 0-3-3L5 17z"/>',
  eye: '<path d="M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12z"/><circle cx="12" cy="12" r="2.75"/>',
  filter: '<path d="M4 6h16M7 12h10M10 18h4"/>',
  info: '<circle cx="12" cy="12" r="9"/><path d="M12 11v5M12 8v.1"/>',
  key: '<circle cx="8" cy="15" r="4"/><path d="m11 12 9-9M16 7l3 3"/>',
  log: '<path d="M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01"/>',
  mail: '<rect x="3" y="5" width="18" height="14" rx="2"/><path d="m3.5 7 8.5 6 8.5-6"/>',
  mask: '<path d="M4 7c5-2 11-2 16 0v4c0 5-3.5 8.5-8 9.5-4.5-1-8-4.5-8-9.5zM8.5 11.5h2M13.5 11.5h2M9.5 15.5c1.5 1 3.5 1 5 0"/>',
  menu: '<path d="M4 7h16M4 12h16M4 17h16"/>',
  more: '<path d="M5 12h.01M12 12h.01M19 12h.01" stroke-width="3"/>',
  organization:
    '<path d="M4 21V5a1 1 0 0 1 1-1h9a1 1 0 0 1 1 1v16M15 9h4a1 1 0 0 1 1 1v11M3 21h18M8 8h3M8 12h3M8 16h3"/>',
  overview: '<path d="M4 20V10M10 20V4M16 20v-7M21 20H3"/>',
  page: '<path d="M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6"/>',
  passkey:
    '<circle cx="9.5" cy="7.5" r="4"/><path d="M2.5 20.5a7 7 0 0 1 10.4-6.1"/><circle cx="17.5" cy="13.5" r="3"/><path d="M17.5 16.5v5l1.75-1.5M17.5 19h1.5"/>',
  pause: '<path d="M9 5v14M15 5v14"/>',
  phone: '<rect x="7" y="2.5" width="10" height="19" rx="2"/><path d="M11 18.5h2"/>',
  play: '<path d="M7 4.5v15l12-7.5z"/>',
  plus: '<path d="M12 5v14M5 12h14"/>',
  print:
    '<path d="M7 9V3.5h10V9M7 17H4.5a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1h15a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H17M7 14h10v6.5H7z"/>',
  remove: '<path d="M4 6.5h16M9 6.5V4h6v2.5M6 6.5 7 20h10l1-13.5M10 11v5M14 11v5"/>',
  repeat: '<path d="M4 12a8 8 0 0 1 13.7-5.6L20 9M20 4v5h-5M20 12a8 8 0 0 1-13.7 5.6L4 15M4 20v-5h5"/>',
  search: '<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>',
  settings:
    '<path d="M4 7h9M19 7h1M4 17h1M11 17h9"/><circle cx="16" cy="7" r="2.5"/><circle cx="8" cy="17" r="2.5"/>',
  shield:
    '<path d="M12 3 4.5 6v5.5c0 4.6 3.2 7.9 7.5 9.5 4.3-1.6 7.5-4.9 7.5-9.5V6z"/><path d="m8.8 12 2.3 2.3 4.2-4.4"/>',
  signOut: '<path d="M14 4H6a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h8M10.5 12H21M17.5 8.5 21 12l-3.5 3.5"/>',
  status: '<path d="M3 12h4l3-8 4 16 3-8h4"/>',
  tag: '<path d="M3.5 11V4.5a1 1 0 0 1 1-1H11l9.5 9.5-7.5 7.5zM8 8h.01"/>',
  terminal: '<rect x="3" y="4.5" width="18" height="15" rx="2"/><path d="m7 9.5 3 2.5-3 2.5M13 15h4"/>',
  updown: '<path d="m8 10 4-4 4 4M8 14l4 4 4-4"/>',
  upload: '<path d="M12 16V5M7 9l5-5 5 5M4.5 20h15"/>',
  user: '<circle cx="12" cy="8" r="4"/><path d="M4.5 20.5a7.5 7.5 0 0 1 15 0"/>',
  users:
    '<circle cx="9" cy="8" r="3.5"/><path d="M2.5 20a6.5 6.5 0 0 1 13 0M16 4.8a3.5 3.5 0 0 1 0 6.4M18.5 14.6a6.5 6.5 0 0 1 3 5.4"/>',
  warning: '<path d="M12 4 2.5 20h19zM12 10v4.5M12 17.2v.1"/>',
  webhook:
    '<path d="M9 8.5a4 4 0 1 1 5.6 3.6l2.6 4.6M12 9l-3.5 6.5M17 20a3.5 3.5 0 1 0-1.5-6.6M13 16.5H7a3.5 3.5 0 1 0 3.4 3.6"/>',
} as const

export type IconName = keyof typeof PATHS

/** Decoration: text or a label beside it says the same. @param state colours it. */
export const icon = (name: IconName, state?: 'good' | 'bad'): Html =>
  new Html(
    `<svg class="icon${state === undefined ? '' : ` ${state}`}" viewBox="0 0 24 24" aria-hidden="true">${PATHS[name]}</svg>`,
  )
