/** The `credentials` of a user in imports and exports. */
import { Type } from '@sinclair/typebox'
import { DIGEST_PATTERN } from '#http/validation/formats'
import { RECOVERY_CODES } from './recovery-codes.ts'
import { secretViolations } from './time-based-codes.ts'

export default {
  totpSecret: Type.Optional(
    Type.String({
      normalize: 'base32',
      violations: secretViolations,
      description:
        'The secret of the authenticator app: base32, for codes with SHA-1, six digits and steps of 30 seconds',
      examples: ['GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'],
    }),
  ),
  recoveryCodes: Type.Optional(
    Type.Array(Type.String({ pattern: DIGEST_PATTERN }), {
      maxItems: RECOVERY_CODES,
      uniqueItems: true,
      description: 'SHA-256 of each recovery code that is left, in base64url',
      examples: [['eTkLRgRvJ0SrzEIqEDPyzEKEhqOLhHjLXTUZ3YlJ_Uo']],
    }),
  ),
}
