/** examples/load: its checks and the commands of docs/load-testing.md. Each file can also be run alone. */
import './load-kit/checks.test.ts'
