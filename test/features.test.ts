/** Each file can also be run alone. */
import './features/built-in.test.ts'
import './features/copy.test.ts'
import './features/declarations.test.ts'
import './features/notes.test.ts'
import './features/operations.test.ts'
import './features/races.test.ts'
import './features/rows-without-owner.test.ts'
import './features/services.test.ts'
