import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseUdpTarget } from '../../src/http/syntax/request-target.ts';

const base = '/.well-known/masque/udp';

for (const [target, host, port] of [
  [`${base}/192.0.2.6/443/`, '192.0.2.6', 443],
  [`${base}/target.example.com/1/`, 'target.example.com', 1],
  [`${base}/2001%3Adb8%3A%3A42/65535/`, '2001:db8::42', 65_535],
  [`${base}/%3a%3affff%3a192.0.2.1/53/`, '::ffff:192.0.2.1', 53],
  [`https://proxy.example:8443${base}/192.0.2.6/443/`, '192.0.2.6', 443],
  [`http://proxy.example${base}/a.example/0443/`, 'a.example', 443],
  [`${base}/2130706433/443/`, '2130706433', 443],
  [`${base}/m%C3%BCnchen.example/443/`, 'münchen.example', 443],
] as const) {
  test(`reads ${target}`, () => assert.deepEqual(parseUdpTarget(target), { host, port }));
}

for (const target of [
  '',
  '*',
  'a.example:443',
  '/',
  base,
  `${base}/`,
  `${base}//443/`,
  `${base}/a.example`,
  `${base}/a.example/`,
  `${base}/a.example/443`,
  `${base}/a.example/443//`,
  `${base}/a.example/443/more`,
  `${base}/a.example/443/?`,
  `${base}/a.example/443/?h=b`,
  `${base}/a.example/443/#`,
  `${base}/a.example//`,
  `${base}/a.example/0/`,
  `${base}/a.example/65536/`,
  `${base}/a.example/+443/`,
  `${base}/a.example/4%2043/`,
  `${base}/a.example/0x1bb/`,
  `${base}/a.example/000443/`,
  `${base}/a.example/https/`,
  `${base}/2001:db8::42/443/`,
  `${base}/[2001%3Adb8%3A%3A42]/443/`,
  `${base}/%5B2001%3Adb8%3A%3A42%5D/443/`,
  `${base}/fe80%3A%3A1%25eth0/443/`,
  `${base}/2001%3Adb8/443/`,
  `${base}/a.example%3A80/443/`,
  `${base}/%252e/443/`,
  `${base}/%2e%2e/443/`,
  `${base}/a%00.example/443/`,
  `${base}/%ff/443/`,
  `${base}/%4/443/`,
  `/.well-known/MASQUE/udp/a.example/443/`,
  `/other${base}/a.example/443/`,
  `ftp://proxy.example${base}/a.example/443/`,
  `https://user@proxy.example${base}/a.example/443/`,
]) {
  test(`refuses ${target === '' ? 'an empty target' : target}`, () => {
    assert.equal(parseUdpTarget(target), undefined);
  });
}
