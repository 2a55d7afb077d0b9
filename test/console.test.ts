/** The console, its sessions and what it draws. */
import './console/history.test.ts'
import './console/pages.test.ts'
import './console/scopes.test.ts'
import './console/security.test.ts'
import './console/administrators.test.ts'
import './console/german.test.ts'
import './console/event-filters.test.ts'
import './console/transfers.test.ts'
