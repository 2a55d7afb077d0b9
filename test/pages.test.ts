import './pages/access.test.ts'
import './pages/security.test.ts'
