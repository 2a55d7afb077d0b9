import './encryption/keyring.test.ts'
