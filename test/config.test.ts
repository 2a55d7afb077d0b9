/** Configuration and secret strength. Each file can also be run alone. */
import './config/brand.test.ts'
import './config/config.test.ts'
import './config/private-keys.test.ts'
import './config/secret-strength.test.ts'
