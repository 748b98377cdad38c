/** The pure parts of the upgrade to h2c: what is taken, the settings, the header block, the first frames. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  encodeHeaderBlock,
  judgeH2cUpgrade,
  mergeSettings,
  readFirstFrames,
  writeFirstFrames,
} from '../../../src/server/h2c-upgrade.ts';

import { decideUpgrade, type UpgradeConditions } from '../../../src/server/upgrades.ts';

const bounds = { contentBytesMax: 32_768, fieldsBytesMax: 16_384 };
const fields = (...more: string[]) => [
  ...['Host', 'a', 'Connection', 'Upgrade, HTTP2-Settings', 'Upgrade', 'h2c'],
  ...['HTTP2-Settings', 'AAMAAABk', ...more],
];
const request = { method: 'GET', target: '/', version: '1.1', rawFields: fields() };
const replaced = (name: string, value: string) =>
  fields().map((text, index, all) => (all[index - 1] === name && index % 2 === 1 ? value : text));

test('takes an upgrade to h2c that is in order', () => {
  const judged = judgeH2cUpgrade(request, bounds);
  assert.ok(judged.ok);
  assert.deepEqual([...judged.settings], [0, 3, 0, 0, 0, 100]);
  assert.equal(judged.authority, 'a');
});

const declined: readonly [string, Partial<typeof request>][] = [
  ['HTTP/1.0', { version: '1.0' }],
  ['HTTP/2.0 in the request line', { version: '2.0' }],
  ['no HTTP2-Settings', { rawFields: fields().slice(0, 6) }],
  ['two HTTP2-Settings', { rawFields: fields('HTTP2-Settings', 'AAMAAABk') }],
  ['base64 with padding', { rawFields: replaced('HTTP2-Settings', 'AAMAAABkAA==') }],
  ['base64 of the other alphabet', { rawFields: replaced('HTTP2-Settings', 'AAMAAA+/') }],
  ['characters that are no base64', { rawFields: replaced('HTTP2-Settings', 'AAMAAAB!') }],
  ['half a setting', { rawFields: replaced('HTTP2-Settings', 'AAMAAA') }],
  ['more settings than a frame may have', { rawFields: replaced('HTTP2-Settings', 'AAMAAABk'.repeat(33)) }],
  ['Connection without HTTP2-Settings', { rawFields: replaced('Connection', 'Upgrade') }],
  ['Connection without Upgrade', { rawFields: replaced('Connection', 'HTTP2-Settings') }],
  ['another protocol', { rawFields: replaced('Upgrade', 'h2') }],
  ['Transfer-Encoding', { rawFields: fields('Transfer-Encoding', 'chunked') }],
  ['content over the bound', { rawFields: fields('Content-Length', '32769') }],
  ['Expect', { rawFields: fields('Expect', '100-continue') }],
  ['an absolute target', { target: 'http://b/' }],
  ['CONNECT', { method: 'CONNECT', target: 'a:1' }],
  ['no Host', { rawFields: fields().slice(2) }],
  ['two Host fields', { rawFields: fields('Host', 'b') }],
  ['a Host that is none', { rawFields: replaced('Host', 'a/b') }],
  ['too many fields', { rawFields: fields(...Array.from({ length: 200 }, () => 'a')) }],
  ['fields that are too long', { rawFields: fields('A', 'x'.repeat(16_300)) }],
];

for (const [name, change] of declined) {
  test(`declines an upgrade to h2c with ${name}`, () => {
    assert.equal(judgeH2cUpgrade({ ...request, ...change }, bounds).ok, false);
  });
}

test('takes content of exactly the bound', () => {
  const rawFields = fields('Content-Length', '32768');
  assert.equal(judgeH2cUpgrade({ ...request, rawFields }, bounds).ok, true);
});

const all: UpgradeConditions = { h2c: true, udp: true, h2cContentBytesMax: 32_768, fieldsBytesMax: 16_384 };
const asking = (upgrade: string, ...more: string[]) => ({
  ...request,
  rawFields: [...replaced('Upgrade', upgrade), ...more],
});

for (const [name, message, conditions, decision] of [
  ['a WebSocket', asking('websocket'), all, 'websocket'],
  ['a WebSocket in another spelling', asking('WebSocket'), all, 'websocket'],
  ['the first of two that are taken', asking('h2c, websocket'), all, 'h2c'],
  ['the second where the first is unknown', asking('TLS/1.3, websocket'), all, 'websocket'],
  ['h2c', asking('h2c'), all, 'h2c'],
  ['h2c where it is not taken', asking('h2c'), { ...all, h2c: false }, 'declined'],
  ['a WebSocket where h2c is not taken', asking('h2c, websocket'), { ...all, h2c: false }, 'websocket'],
  ['connect-udp', asking('connect-udp'), all, 'connect-udp'],
  ['connect-udp without a proxy', asking('connect-udp'), { ...all, udp: false }, 'declined'],
  ['connect-ip', asking('connect-ip'), all, 'unspoken'],
  ['a WebSocket with POST', { ...asking('websocket'), method: 'POST' }, all, 'declined'],
  ['a WebSocket with content', asking('websocket', 'Content-Length', '1'), all, 'declined'],
  ['a WebSocket with empty content', asking('websocket', 'Content-Length', '0'), all, 'websocket'],
  ['a WebSocket in chunks', asking('websocket', 'Transfer-Encoding', 'chunked'), all, 'declined'],
  ['a WebSocket over HTTP/1.0', { ...asking('websocket'), version: '1.0' }, all, 'declined'],
  ['nothing', asking(''), all, 'declined'],
] as const) {
  test(`decides ${decision} on an Upgrade to ${name}`, () => {
    assert.equal(decideUpgrade(message, conditions), decision);
  });
}

test('merges settings by identifier, the later value winning', () => {
  const first = Uint8Array.from([0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 0, 10, 0, 3, 0, 0, 0, 7]);
  const later = Uint8Array.from([0, 4, 0, 0, 1, 0]);
  assert.deepEqual([...mergeSettings(first, later)], [0, 3, 0, 0, 0, 7, 0, 4, 0, 0, 1, 0]);
  assert.equal(mergeSettings(new Uint8Array(0), new Uint8Array(0)).length, 0);
});

test('writes fields as literals that leave the dynamic table alone, without those of the connection', () => {
  const rawFields = fields(
    'X-A',
    'b',
    'Keep-Alive',
    '1',
    'X-Hop',
    '1',
    'Connection',
    'x-hop',
    'TE',
    'trailers',
  );
  const block = Buffer.from(encodeHeaderBlock({ ...request, rawFields }, 'a'));
  const literal = (name: string, value: string) =>
    `\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`;
  assert.equal(
    block.toString('latin1'),
    [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':authority', 'a'],
      [':path', '/'],
      ['x-a', 'b'],
    ]
      .map(([name = '', value = '']) => literal(name, value))
      .join(''),
  );
});

test('writes lengths of 127 and more in several octets', () => {
  for (const [length, octets] of [
    [126, [126]],
    [127, [127, 0]],
    [254, [127, 127]],
    [255, [127, 128, 1]],
    [1337 + 127, [127, 185, 10]],
  ] as const) {
    const block = encodeHeaderBlock({ ...request, rawFields: ['a', 'x'.repeat(length)] }, 'a');
    const at = block.length - length - octets.length;
    assert.deepEqual([...block.subarray(at, at + octets.length)], [...octets], String(length));
  }
});

test('reads the preface and the first frame however they are cut', () => {
  const whole = writeFirstFrames(
    Uint8Array.from([0, 3, 0, 0, 0, 1]),
    Uint8Array.from([0x82]),
    new Uint8Array(0),
  );
  const settingsEnd = 24 + 9 + 6;
  for (let length = 0; length < settingsEnd; length += 1) {
    assert.equal(readFirstFrames(whole.subarray(0, length)).kind, 'more', String(length));
  }
  const read = readFirstFrames(whole);
  assert.ok(read.kind === 'read');
  assert.deepEqual([...read.settings], [0, 3, 0, 0, 0, 1]);
  assert.deepEqual([...read.rest], [0, 0, 1, 1, 5, 0, 0, 0, 1, 0x82]);
});

test('refuses another beginning than preface and SETTINGS', () => {
  const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
  for (const octets of [
    'GET / HTTP/1.1\r\n',
    'PRI * HTTP/2.0\r\n\r\nXM',
    `${preface}\0\0\0\x04\x01\0\0\0\0`,
    `${preface}\0\0\0\x04\0\0\0\0\x01`,
    `${preface}\0\0\x05\x04\0\0\0\0\0`,
    `${preface}\0\x40\x05\x04\0\0\0\0\0`,
    `${preface}\0\0\x04\x08\0\0\0\0\0`,
  ]) {
    assert.equal(readFirstFrames(Buffer.from(octets, 'latin1')).kind, 'wrong', JSON.stringify(octets));
  }
});

test('cuts a long block and long content into frames of at most 16 KiB', () => {
  const octets = writeFirstFrames(new Uint8Array(0), new Uint8Array(20_000), new Uint8Array(32_768));
  const frames: [number, number, number][] = [];
  for (let at = 24; at < octets.length; ) {
    const length = octets.readUIntBE(at, 3);
    frames.push([octets[at + 3] ?? 0, octets[at + 4] ?? 0, length]);
    at += 9 + length;
  }
  assert.deepEqual(frames, [
    [4, 0, 0],
    [1, 0, 16_384],
    [9, 4, 3_616],
    [0, 0, 16_384],
    [0, 1, 16_384],
  ]);
});
