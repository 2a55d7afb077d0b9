/** TypeBox schemas of authenticator apps and recovery codes. */
import { Type } from '@sinclair/typebox'
import { NullableTimestamp } from '#routes/schemas'

/** A code of an authenticator app. Any text: a code of another form is wrong, not invalid. */
export const AppCode = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Six digits, as the authenticator app shows them',
  examples: ['123456'],
})

export const NewTotp = Type.Object(
  {
    secret: Type.String({
      description: 'Base32, to type in',
      examples: ['JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'],
    }),
    uri: Type.String({
      description: 'For a link on the device with the app',
      examples: [
        'otpauth://totp/example.com:ann%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=example.com',
      ],
    }),
    qr: Type.String({
      description: 'The URI as a QR code: SVG',
      examples: ['<svg xmlns="http://www.w3.org/2000/svg"/>'],
    }),
  },
  { title: 'NewTotp' },
)

export const Totp = Type.Object(
  {
    confirmedAt: NullableTimestamp,
    recoveryCodes: Type.Integer({ description: 'Codes that are not used', examples: [10] }),
  },
  { title: 'Totp' },
)

export const RecoveryCodes = Type.Object(
  {
    recoveryCodes: Type.Array(Type.String(), {
      description: 'Each signs in once in place of a code of the app; shown only here',
      examples: [['k3wf-7hqa-x9mz-24tn-p6dr-8ubc']],
    }),
  },
  { title: 'RecoveryCodes' },
)
