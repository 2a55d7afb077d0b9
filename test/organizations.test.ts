import './organizations/gate.test.ts'
import './organizations/invitations.test.ts'
import './organizations/races.test.ts'
import './organizations/routes.test.ts'
