/** What services import as `gatehouse/verifier`. */
export { authenticate, type Needs, type Refusal, requireUser, verifierPlugin } from './middleware.ts'
export { VerifierError } from './requests.ts'
export {
  createVerifier,
  type Identity,
  type Verifier,
  type VerifierOptions,
  type VerifierStatistics,
} from './verifier.ts'
