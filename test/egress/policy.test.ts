import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  blockedPorts,
  createEgressPolicy,
  type EgressPolicyOptions,
  hostnameOf,
  judgeAddress,
} from '../../src/egress/policy.ts';

import { readVectors } from './vectors.ts';

const defaults: EgressPolicyOptions = {
  egressAllow: '',
  egressPorts: '80,443,1024-65535',
  ownListeners: () => [],
  localAddresses: () => ['192.168.7.7', 'fe80::7'],
};

const policyOf = (options: Partial<EgressPolicyOptions> = {}) =>
  createEgressPolicy({ ...defaults, ...options });

function reasonOf(options: Partial<EgressPolicyOptions>, address: string, port: number): string {
  const verdict = policyOf(options).judge(address, port);
  return verdict.allowed ? 'allowed' : verdict.reason;
}

test('judges every published URL as the vectors say', () => {
  const { checkUrl } = policyOf();
  const { urls } = readVectors();
  for (const { url, ok, note } of urls) assert.equal(checkUrl(url).ok, ok, `${url}: ${note}`);
  assert.ok(urls.length > 50);
});

test('judges an IPv4 address in a URL the same in every form that a URL parser reads', () => {
  const { checkUrl } = policyOf();
  const octet = fc.oneof(fc.nat(255), fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 224, 254));
  fc.assert(
    fc.property(octet, octet, octet, octet, (a, b, c, d) => {
      const { allowed } = judgeAddress(`${a}.${b}.${c}.${d}`);
      const low = (c << 8) | d;
      const whole = ((a << 24) | (b << 16) | low) >>> 0;
      const hex = `0x${whole.toString(16)}`;
      const octal = [a, b, c, d].map((part) => `0${part.toString(8)}`).join('.');
      const mapped = `[::ffff:${((a << 8) | b).toString(16)}:${low.toString(16)}]`;
      const forms = [`${a}.${b}.${c}.${d}`, `${a}.${b}.${c}.${d}.`, String(whole), hex, octal, mapped];
      for (const host of [...forms, `${a}.${b}.${low}`, `0X${a.toString(16)}.${(whole & 0xffffff) >>> 0}`]) {
        assert.equal(checkUrl(`http://${host}/`).ok, allowed, host);
      }
    }),
    { numRuns: 200 },
  );
});

test('says of a URL what is wrong with it, never where it leads', () => {
  const { checkUrl } = policyOf();
  const why = (url: string, options?: { httpsRequired: boolean }) => {
    const verdict = checkUrl(url, options);
    return verdict.ok ? undefined : verdict.why;
  };
  assert.equal(why('hooks.example'), 'must be an absolute http or https URL');
  assert.equal(why('https://a:b@hooks.example/'), 'must have no user name or password');
  assert.equal(why('https://hooks.example/#a'), 'must have no fragment');
  assert.equal(why('https://hooks.example:25/'), 'must not name port 25, which webhooks are not sent to');
  assert.equal(why('http://10.0.0.1/'), 'must name a host of the public internet');
  assert.equal(why('http://hooks.example/', { httpsRequired: true }), 'must be https');
  assert.equal(why('https://hooks.example/', { httpsRequired: true }), undefined);
  assert.equal(why(`https://hooks.example/${'a'.repeat(2026)}`), undefined);
  assert.equal(why(`https://hooks.example/${'a'.repeat(2027)}`), 'must have at most 2048 characters');
});

test('keeps the ports that Fetch blocks closed, also where the allow-list opens the rest', () => {
  const policy = policyOf({ egressAllow: '127.0.0.0/8', egressPorts: '443' });
  for (const port of blockedPorts) {
    assert.equal(policy.judge('127.0.0.1', port).allowed, false, `port ${port}`);
    assert.equal(policy.checkUrl(`http://127.0.0.1:${port}/`).ok, false);
    assert.equal(policy.checkUrl(`http://receiver.example:${port}/`).ok, false);
  }
});

test('lets an allow-listed address through at any other port, in any of its forms', () => {
  const egressAllow = '127.0.0.0/8,fd00::/8,::ffff:10.1.0.0/112';
  assert.equal(reasonOf({ egressAllow }, '127.0.0.1', 24), 'allowed');
  assert.equal(reasonOf({ egressAllow }, '::ffff:127.0.0.1', 24), 'allowed');
  assert.equal(reasonOf({ egressAllow }, 'fd12::1', 6670), 'allowed');
  assert.equal(reasonOf({ egressAllow }, '10.1.2.3', 443), 'allowed');
  assert.equal(reasonOf({ egressAllow }, '10.2.2.3', 443), 'address');
  assert.equal(reasonOf({ egressAllow }, '::1', 443), 'address');
  assert.equal(policyOf({ egressAllow }).checkUrl('http://localhost:2222/').ok, true);
  assert.equal(policyOf({ egressAllow: '10.0.0.0/8' }).checkUrl('http://localhost:2222/').ok, false);
});

test('does not let NAT64 of a private address through because the address is allow-listed', () => {
  assert.equal(reasonOf({ egressAllow: '10.0.0.0/8' }, '64:ff9b::10.0.0.1', 443), 'address');
});

test('lets public addresses through at permitted ports alone, less those that the Fetch standard blocks', () => {
  assert.equal(reasonOf({}, '8.8.8.8', 443), 'allowed');
  assert.equal(reasonOf({}, '8.8.8.8', 22), 'port');
  assert.equal(reasonOf({}, '8.8.8.8', 1023), 'port');
  assert.equal(reasonOf({}, '8.8.8.8', 1024), 'allowed');
  assert.equal(reasonOf({}, '8.8.8.8', 6667), 'port');
  assert.equal(reasonOf({ egressPorts: '1-65535' }, '8.8.8.8', 25), 'port');
  assert.equal(reasonOf({ egressPorts: '8443' }, '8.8.8.8', 443), 'port');
  assert.equal(reasonOf({ egressPorts: '' }, '8.8.8.8', 443), 'port');
});

test('judges the port of a name at once only while every address behind it is held to it', () => {
  assert.equal(policyOf().checkUrl('http://intranet:24/').ok, false);
  assert.equal(policyOf({ egressAllow: '10.0.0.0/8' }).checkUrl('http://intranet:24/').ok, true);
});

test("never leads back to the program's own listeners, whatever is allow-listed", () => {
  const egressAllow = '0.0.0.0/0,::/0';
  const at = (address: string) => ({ egressAllow, ownListeners: () => [{ address, port: 4000 }] });
  assert.equal(reasonOf(at('127.0.0.1'), '127.0.0.1', 4000), 'own-listener');
  assert.equal(reasonOf(at('127.0.0.1'), '::ffff:127.0.0.1', 4000), 'own-listener');
  assert.equal(reasonOf(at('127.0.0.1'), '0.0.0.0', 4000), 'own-listener');
  assert.equal(reasonOf(at('127.0.0.1'), '127.0.0.1', 4001), 'allowed');
  assert.equal(reasonOf(at('127.0.0.1'), '127.0.0.2', 4000), 'allowed');
  assert.equal(reasonOf(at('::1'), '::', 4000), 'own-listener');
  for (const everywhere of ['0.0.0.0', '::']) {
    assert.equal(reasonOf(at(everywhere), '127.0.0.1', 4000), 'own-listener');
    assert.equal(reasonOf(at(everywhere), '127.9.9.9', 4000), 'own-listener');
    assert.equal(reasonOf(at(everywhere), '::1', 4000), 'own-listener');
    assert.equal(reasonOf(at(everywhere), '192.168.7.7', 4000), 'own-listener');
    assert.equal(reasonOf(at(everywhere), '192.168.7.8', 4000), 'allowed');
    assert.equal(reasonOf(at(everywhere), '192.168.7.7', 4001), 'allowed');
  }
});

test('takes the host of a URL without brackets', () => {
  assert.equal(hostnameOf(new URL('http://[::1]:80/')), '::1');
  assert.equal(hostnameOf(new URL('http://a.example/')), 'a.example');
});

test('leaves every port to others where it is told to, and judges addresses all the same', () => {
  const { judge } = policyOf({ everyPort: true, ownListeners: () => [{ address: '192.0.2.1', port: 4000 }] });
  for (const port of [1, 22, 25, 443, 5432, 6000, 65_535]) {
    assert.equal(judge('8.8.8.8', port).allowed, true, String(port));
    assert.equal(judge('127.0.0.1', port).allowed, false, String(port));
  }
  assert.equal(judge('192.0.2.1', 4000).allowed, false);
});
