import './webhooks/deliveries.test.ts'
import './webhooks/endpoints.test.ts'
import './webhooks/signatures.test.ts'
import './webhooks/ssrf.test.ts'
