import './forward-auth/identity.test.ts'
import './forward-auth/sign-in.test.ts'
import './forward-auth/cookie-domain.test.ts'
import './forward-auth/proxies.test.ts'
