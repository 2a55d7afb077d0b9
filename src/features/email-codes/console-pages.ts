/** What the console says about codes and links by mail. */
import type { ConsoleParts } from '#http/pages/feature-pages'

export const settings: Readonly<Record<string, string>> = {
  EMAIL_CODES: 'on: Nutzer können sich mit Codes per Mail anmelden',
  MAGIC_LINKS: 'on: Nutzer können sich mit Links per Mail anmelden',
}

export default {} satisfies ConsoleParts
