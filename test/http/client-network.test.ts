/** Client addresses in every spelling: what is stored, and the network that counts (rate limits; docs/design.md, "Account life cycle"). */
import { isIP } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { clientNetwork } from '#core/rate-limits/limits'
import { clientAddress } from '#http/ip-address'

const NETWORKS: Record<string, (string | undefined)[]> = {
  '192.0.2.1': [
    '192.0.2.1',
    '::ffff:192.0.2.1',
    '::FFFF:192.0.2.1',
    '::ffff:c000:201',
    '0:0:0:0:0:ffff:c000:0201',
    '0000:0000:0000:0000:0000:ffff:192.0.2.1',
    '192.0.2.1:4711',
    '[::ffff:192.0.2.1]:4711',
  ],
  '2001:db8:0:1::/64': [
    '2001:db8:0:1::',
    '2001:db8:0:1::1',
    '2001:DB8:0:1:ffff:ffff:ffff:ffff',
    '2001:0db8:0000:0001:0000:0000:0000:0001',
    '2001:db8::1:0:0:0:1',
    '2001:db8:0:1:0:0:192.0.2.1',
    '[2001:db8:0:1::1]',
    '[2001:db8:0:1::1]:4711',
  ],
  '2001:db8:0:2::/64': ['2001:db8:0:2::1'],
  '0:0:0:0::/64': ['::', '::1', '::192.0.2.1', '::fffe:192.0.2.1', '::ffff:0:192.0.2.1'],
  'fe80:0:0:0::/64': ['fe80::1', 'fe80::1%eth0', 'fe80::2%2'],
  '1:2:3:4::/64': ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7::', '1:2:3:4::'],
  '0:0:3:4::/64': ['::3:4:5:6:7:8'],
  // No address at all.
  '': ['', undefined, 'unknown', '1.2.3', '1.2.3.4.5', '01.2.3.4', '1.2.3.4:x', '[::1', 'x'.repeat(10_000)],
}

/** The stored form of each address. */
const ADDRESSES: Record<string, string | null> = {
  '192.0.2.1': '192.0.2.1',
  '192.0.2.1:4711': '192.0.2.1',
  '::ffff:192.0.2.1': '192.0.2.1',
  '[::FFFF:c000:0201]:4711': '192.0.2.1',
  '2001:0DB8:0000:0001:0:0:0:A': '2001:db8:0:1::a',
  '[2001:db8::1]:4711': '2001:db8::1',
  'fe80::1%eth0': 'fe80::1',
  '::1': '::1',
  unknown: null,
  _hidden: null,
  '': null,
}

t.test('every spelling of an address is one network, IPv6 by its /64', async t => {
  for (const [network, addresses] of Object.entries(NETWORKS)) {
    for (const address of addresses) t.equal(clientNetwork(clientAddress(address)), network, String(address))
  }
})

t.test(
  'an address is stored in one spelling, without port and zone; invalid ones are not stored',
  async t => {
    for (const [given, kept] of Object.entries(ADDRESSES)) t.equal(clientAddress(given), kept, given)
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), ip => {
        const address = clientAddress(ip)
        return address !== null && isIP(address) > 0 && clientAddress(address) === address
      }),
    )
    t.pass()
  },
)

t.test('any forwarded value is short and never an error', async t => {
  fc.assert(fc.property(fc.string(), text => clientNetwork(clientAddress(text)).length <= 64))
  fc.assert(
    fc.property(fc.ipV6(), address =>
      /^([\da-f]{1,4}:){4}:\/64$|^\d+(\.\d+){3}$/.test(clientNetwork(clientAddress(address))),
    ),
  )
  t.pass()
})
