import type { SendMailOptions } from 'nodemailer'
import type { Message } from './message.ts'

/** What nodemailer makes a message of. The recipient is an object: text would be parsed, and can name several. */
export const mailOptions = (
  from: string,
  { id, date, to, subject, text, html }: Message,
): SendMailOptions => ({
  from,
  to: { name: '', address: to },
  date,
  messageId: `<${id}@${/@([^@>]+)>?$/.exec(from)?.[1] ?? 'localhost'}>`,
  subject,
  text,
  html,
  // No out-of-office replies (RFC 3834 §5).
  headers: { 'Auto-Submitted': 'auto-generated' },
})
