/** Each file can also be run alone. */
import './features/notes.test.ts'
