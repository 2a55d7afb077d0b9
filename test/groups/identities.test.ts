/** Identities at other providers, and organizations. */
import '../identities.test.ts'
import '../organizations.test.ts'
