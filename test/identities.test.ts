/** Who is asking: what is remembered of tokens, and that it is never more than the store knows. Each file runs by itself as well. */
import './identities/identities.test.ts'
import './identities/model.test.ts'
