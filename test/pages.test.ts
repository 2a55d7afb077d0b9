import './pages/access.test.ts'
