/** What the console says of forward authentication. */
import type { ConsoleParts } from '#http/pages/feature-pages'

export const settings: Readonly<Record<string, string>> = {
  FORWARD_AUTH: 'Ob Reverse-Proxys unter /forward-auth fragen können, von wem eine Anfrage kommt',
}

export default {} satisfies ConsoleParts
