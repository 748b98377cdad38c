/** The address that a caller is counted by. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { createCallerAddress } from '../../../src/kernel/rate-limit/caller-address.ts';

const direct = createCallerAddress(0);
const proxied = createCallerAddress(1);

function request(peer: string, ...forwarded: readonly string[]) {
  return { peer, fields: readRequestFields(forwarded.flatMap((value) => ['X-Forwarded-For', value])) };
}

for (const [peer, counted] of [
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['::ffff:cb00:7107', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2:ffff::', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['', ''],
] as const) {
  test(`counts the peer ${peer} as ${counted}`, () => {
    assert.equal(direct(request(peer)), counted);
    assert.equal(direct(request(peer)), counted, 'a second time');
  });
}

test('counts two addresses of one /64 as one caller, and those of two as two', () => {
  assert.equal(direct(request('2001:db8::1')), direct(request('2001:db8::ffff:1')));
  assert.notEqual(direct(request('2001:db8::1')), direct(request('2001:db8:0:1::1')));
});

test('takes no word of a client for its address unless a proxy is declared', () => {
  assert.equal(direct(request('203.0.113.7', '198.51.100.1')), '203.0.113.7');
});

for (const [proxies, field, counted] of [
  [2, '192.0.2.9, 198.51.100.1, 10.0.0.1', '198.51.100.1'],
  [3, '192.0.2.9, 198.51.100.1, 10.0.0.1', '192.0.2.9'],
  [3, '198.51.100.1, 10.0.0.1', '198.51.100.1'],
  [2, ', 10.0.0.1', '203.0.113.7'],
  [100, 'x,'.repeat(1000), '203.0.113.7'],
] as const) {
  test(`counts behind ${proxies} proxies ${counted} of ${field.slice(0, 40)}`, () => {
    assert.equal(createCallerAddress(proxies)(request('203.0.113.7', field)), counted);
  });
}

for (const [title, fields, counted] of [
  ['the only address', ['198.51.100.1'], '198.51.100.1'],
  ['the last of several', ['10.0.0.1, 192.0.2.9 ,198.51.100.1 '], '198.51.100.1'],
  ['the last of several lines', ['10.0.0.1', '192.0.2.9', '198.51.100.1'], '198.51.100.1'],
  ['an address without its port', ['198.51.100.1:4711'], '198.51.100.1'],
  ['an IPv6 address by its /64', ['2001:db8:1:2::9'], '2001:db8:1:2::/64'],
  ['an IPv6 address in brackets', ['[2001:db8:1:2::9]:443'], '2001:db8:1:2::/64'],
  ['an IPv4 address within IPv6', ['::ffff:198.51.100.1'], '198.51.100.1'],
  ['the peer where nothing was forwarded', [], '203.0.113.7'],
  ['the peer where the last is no address', ['198.51.100.1, unknown'], '203.0.113.7'],
  ['the peer where the last is empty', ['198.51.100.1,'], '203.0.113.7'],
  ['the peer where the last only looks like one', ['198.51.100.256'], '203.0.113.7'],
  ['the peer where a bracket is not closed', ['[2001:db8::1'], '203.0.113.7'],
] as const) {
  test(`counts behind a proxy ${title}`, () => {
    assert.equal(proxied(request('203.0.113.7', ...fields)), counted);
  });
}

test('remembers a bounded number of prefixes and stays right beyond it', () => {
  for (let group = 0; group < 5000; group += 1) {
    const hex = group.toString(16);
    assert.equal(direct(request(`2001:db8:0:${hex}::1`)), `2001:db8:0:${hex}::/64`);
  }
});

test('keeps no long field in memory for the address at its end', () => {
  const addressOf = createCallerAddress(1);
  const before = process.memoryUsage().heapUsed;
  const kept: string[] = [];
  for (let at = 0; at < 1000; at += 1) {
    const forwarded = `${Buffer.alloc(60_000, 'x').toString('latin1')}, 192.168.${100 + (at % 100)}.${100 + (at % 150)}`;
    kept.push(addressOf(request('203.0.113.7', forwarded)));
  }
  assert.equal(kept[0], '192.168.100.100');
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const grown = process.memoryUsage().heapUsed - before;
  assert.ok(grown < 20_000_000, `${grown} octets for 1,000 addresses`);
});

test('takes what is longer than any address for none', () => {
  assert.equal(proxied(request('203.0.113.7', `${'0:'.repeat(5000)}1`)), '203.0.113.7');
});
