/** What services import as `gatehouse/verifier`. */
export type { Identity, VerifierOptions, VerifierStatistics } from './interface.ts'
export { authenticate, type Needs, type Refusal, requireUser, verifierPlugin } from './middleware.ts'
export { VerifierError } from './requests.ts'
export { createVerifier, type Verifier } from './verifier.ts'
