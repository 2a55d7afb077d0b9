import './verifier/verifier.test.ts'
import './verifier/failures.test.ts'
import './verifier/middleware.test.ts'
import './verifier/histories.test.ts'
