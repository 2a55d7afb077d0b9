import './organizations/invitations.test.ts'
import './organizations/routes.test.ts'
