import type { TotpState } from './totp.ts'

export const serializeTotp = ({ confirmedAt, recoveryCodes }: TotpState) => ({
  confirmedAt: confirmedAt === null ? null : new Date(confirmedAt).toISOString(),
  recoveryCodes,
})
