/** The console, its sessions and what it draws. */
import './console/pages.test.ts'
