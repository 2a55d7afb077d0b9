/** What the console says of clients, resources and grants. */
import type { ConsoleParts, EventSentence } from '#http/pages/feature-pages'

const said = (en: string, de: string, isBad = false): EventSentence => ({
  own: { en: `{actor} ${en}`, de: `{actor} ${de}` },
  ...(isBad && { isBad: true }),
})

const EVENTS: Readonly<Record<string, EventSentence>> = {
  'client.created': said('registered a client', 'hat einen Client registriert'),
  'client.changed': said('changed a client', 'hat einen Client geändert'),
  'client.secret-rotated': said(
    'gave a client another secret',
    'hat einem Client ein neues Geheimnis gegeben',
  ),
  'client.deleted': said('deleted a client', 'hat einen Client gelöscht', true),
  'resource.created': said('added a resource', 'hat eine Ressource hinzugefügt'),
  'resource.changed': said('changed a resource', 'hat eine Ressource geändert'),
  'resource.deleted': said('deleted a resource', 'hat eine Ressource gelöscht', true),
  'grant.created': said('gave an application access', 'hat einer Anwendung Zugriff gegeben'),
  'device.approved': said('connected a device', 'hat ein Gerät verbunden'),
  'grant.revoked': said('ended the access of an application', 'hat den Zugriff einer Anwendung beendet'),
  'grant.reused': said(
    'used a replaced token of an application, whose access has ended',
    'hat ein ersetztes Token einer Anwendung verwendet, deren Zugriff damit beendet ist',
    true,
  ),
}

export const scopes: Readonly<Record<string, string>> = {
  'clients:read': 'Clients und Ressourcen des Autorisierungsservers auflisten und lesen',
  'clients:write': 'Clients und Ressourcen erzeugen, ändern und löschen',
  'clients:trust': 'Clients von der Zustimmung der Nutzer und von PKCE ausnehmen',
}

export const settings: Readonly<Record<string, string>> = {
  OAUTH: 'Ob andere Anwendungen und Programme Zugriff per OAuth bekommen',
  OAUTH_ACCESS_TOKEN: 'Lebensdauer der Zugriffstokens von Clients',
  OAUTH_GRANT: 'Zeit, nach der ein Nutzer einem Client von neuem Zugriff geben muss',
  OAUTH_GRANT_IDLE: 'Zeit ohne Erneuerung, nach der ein Zugriff endet',
  OAUTH_RSA_KEY: 'RSA-Schlüssel, der ID-Tokens signiert',
  OAUTH_RSA_KEY_PREVIOUS: 'Ein weiterer RSA-Schlüssel, der nur veröffentlicht wird',
  OAUTH_REFRESH_WINDOW: 'Zeit, in der ein Refresh-Token eines Clients ohne Geheimnis nicht ersetzt wird',
}

export default { events: EVENTS } satisfies ConsoleParts
