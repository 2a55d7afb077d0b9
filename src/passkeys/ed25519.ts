/** Points of Ed25519 (RFC 8032 §5.1), which importing a key does not check. */

const P = 2n ** 255n - 19n

const power = (base: bigint, exponent: bigint): bigint => {
  let result = 1n
  for (let [square, rest] = [base, exponent]; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % P
    square = (square * square) % P
  }
  return result
}

const inverse = (value: bigint): bigint => power(value, P - 2n)

/** Of the curve: −x² + y² = 1 + d·x²·y². */
const D = ((P - 121_665n) * inverse(121_666n)) % P

/**
 * Whether 32 bytes are the canonical form of a point whose order is not small. With a point of small order as the public key, anybody can
 * make signatures that OpenSSL accepts, depending on its version.
 */
export const isEd25519Point = (bytes: Uint8Array): boolean => {
  // Little-endian. The highest bit is the sign of x.
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`) & (2n ** 255n - 1n)
  if (y >= P) return false
  const y2 = (y * y) % P
  // d is no square, so this is never divided by zero.
  const x2 = ((y2 + P - 1n) * inverse((D * y2 + 1n) % P)) % P
  // Points of order 1 and 2, of order 4, and of order 8: doubling these gives y = 0.
  if (x2 === 0n || y2 === 0n || (x2 + y2) % P === 0n) return false
  return power(x2, (P - 1n) / 2n) === 1n
}
