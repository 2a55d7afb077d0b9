/** Identities at other providers, organizations, and the authorization server. */
import '../identities.test.ts'
import '../oauth.test.ts'
import '../forward-auth.test.ts'
import '../organizations.test.ts'
