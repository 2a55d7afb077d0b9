import './totp/recovery-codes.test.ts'
import './totp/time-based-codes.test.ts'
