/** What only a browser does. */
import '../client/browser.test.ts'
import '../console/browser.test.ts'
import '../documents/docs-browser.test.ts'
import '../gates/cors-browser.test.ts'
import '../identities/browser.test.ts'
import '../organizations/browser.test.ts'
import '../pages/browser.test.ts'
import '../passkeys/browser.test.ts'
