/** Who is asking: what is remembered of tokens, and that it is never more than the store knows. Each file runs by itself as well. */
import './authenticator/authenticator.test.ts'
import './authenticator/model.test.ts'
