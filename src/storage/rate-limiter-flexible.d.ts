/**
 * The library's single files. Its index loads limiters for a dozen databases, which costs 20 ms at the start and 6 MB.
 */
declare module 'rate-limiter-flexible/lib/RateLimiterMemory.js' {
  export { RateLimiterMemory as default } from 'rate-limiter-flexible'
}
declare module 'rate-limiter-flexible/lib/RateLimiterPostgres.js' {
  export { RateLimiterPostgres as default } from 'rate-limiter-flexible'
}
declare module 'rate-limiter-flexible/lib/RateLimiterRes.js' {
  export { RateLimiterRes as default } from 'rate-limiter-flexible'
}
declare module 'rate-limiter-flexible/lib/RLWrapperTimeouts.js' {
  export { RLWrapperTimeouts as default } from 'rate-limiter-flexible'
}
