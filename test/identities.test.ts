/** Sign-in with other providers (docs/design.md, "Other providers"). */
import './identities/sign-in.test.ts'
import './identities/conformance.test.ts'
import './identities/linking.test.ts'
import './identities/pages.test.ts'
import './identities/settings.test.ts'
import './identities/hostile-providers.test.ts'
import './identities/provider-responses.test.ts'
import './identities/presets.test.ts'
