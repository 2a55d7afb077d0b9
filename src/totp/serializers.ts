import { toIsoOrNull } from '../users/serializers.ts'
import type { TotpState } from './totp.ts'

export const serializeTotp = ({ confirmedAt, recoveryCodes }: TotpState) => ({
  confirmedAt: toIsoOrNull(confirmedAt),
  recoveryCodes,
})
