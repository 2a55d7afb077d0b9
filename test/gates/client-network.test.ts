/** By what an address is counted (DESIGN §9, rate limits), in every spelling. */
import fc from 'fast-check'
import t from 'tap'
import { clientNetwork } from '../../src/http/client-network.ts'

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
  // No address at all: counted as it is.
  '': ['', undefined],
  unknown: ['unknown'],
  '1.2.3': ['1.2.3'],
}

t.test('every spelling of an address counts as one, IPv6 by its /64', async t => {
  for (const [network, addresses] of Object.entries(NETWORKS)) {
    for (const address of addresses) t.equal(clientNetwork(address), network, String(address))
  }
})

t.test('whatever a proxy writes is short and never an error', async t => {
  t.equal(clientNetwork('x'.repeat(10_000)).length, 64)
  fc.assert(fc.property(fc.string(), text => clientNetwork(text).length <= 64))
  fc.assert(
    fc.property(fc.ipV6(), address =>
      /^([\da-f]{1,4}:){4}:\/64$|^\d+(\.\d+){3}$/.test(clientNetwork(address)),
    ),
  )
  t.pass()
})
