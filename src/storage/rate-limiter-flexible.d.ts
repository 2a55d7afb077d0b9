/** The library's single files: its index would load limiters for a dozen databases at the start. */
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
