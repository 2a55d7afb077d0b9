import './pages/signed-out.test.ts'
import './pages/sign-up.test.ts'
import './pages/security.test.ts'
import './pages/texts.test.ts'
