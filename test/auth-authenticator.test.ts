/**
 * The authenticator. Each file can also be run alone. In a process of its own, since the model keeps the event loop busy for
 * longer than plugins of the other tests may take to start.
 */
import './auth/authenticator.test.ts'
