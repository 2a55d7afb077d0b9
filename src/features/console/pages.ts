/** What the console adds to the hosted pages: its script, its stylesheet, and the texts of its errors. */
import { defineTexts } from '#base/texts'
import type { FeaturePages } from '#http/pages/feature-pages'

const TEXTS = defineTexts('console', {
  en: {
    errors: {
      adminKeyWrong: 'The admin key is not valid.',
      otherAdminKey: 'This is not the admin key that you have signed in with.',
      administratorRequired:
        'Your account does not administer this service, or you have not signed in with it.',
      administratorFactorRequired:
        'Add a passkey or an authenticator app to your account, and sign in with it.',
      nothingFound: 'No user or key is known by this.',
      fileRequired: 'Choose a file with users, of at most 16 MB.',
      gone: 'There is nothing any more that this could be done to.',
      scopeRequired: 'You have no scope for this.',
    },
  },
  de: {
    errors: {
      adminKeyWrong: 'Der Admin-Schlüssel ist nicht gültig.',
      otherAdminKey: 'Das ist nicht der Admin-Schlüssel, mit dem Sie angemeldet sind.',
      administratorRequired:
        'Ihr Konto verwaltet diesen Dienst nicht, oder Sie haben sich nicht damit angemeldet.',
      administratorFactorRequired:
        'Fügen Sie Ihrem Konto einen Passkey oder eine Authenticator-App hinzu, und melden Sie sich damit an.',
      nothingFound: 'Kein Nutzer und kein Schlüssel ist so bekannt.',
      fileRequired: 'Wählen Sie eine Datei mit Nutzern, von höchstens 16 MB.',
      gone: 'Es gibt nichts mehr, womit sich das tun ließe.',
      scopeRequired: 'Dafür haben Sie keinen Scope.',
    },
  },
})

export default ({ CONSOLE }: { readonly CONSOLE: 'on' | 'off' }): FeaturePages =>
  CONSOLE === 'off'
    ? { texts: TEXTS }
    : {
        texts: TEXTS,
        assets: {
          script: new URL('page-script.js', import.meta.url),
          style: new URL('page-style.css', import.meta.url),
        },
      }
