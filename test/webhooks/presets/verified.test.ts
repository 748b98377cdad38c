/** What every preset believes and refuses, whoever its sender is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { presets } from '../../../src/webhooks/presets.ts';
import {
  type Conduct,
  conducts,
  nowSeconds,
  otherSecret,
  type SignedPreset as PresetName,
  type Sent,
  secret,
  type ToSend,
} from './signed-message.ts';
import { type Judging, verdictOf } from './verdict-of.ts';

const presetNames = Object.keys(conducts) as PresetName[];
const conductOf = (preset: PresetName): Conduct => conducts[preset];
const body = Buffer.from('{"id":"evt_1","type":"a.b","name":"Käse","data":{"n":1}}');

function send(preset: PresetName, more: Partial<ToSend> = {}): Sent {
  return conductOf(preset).send({ body, secrets: [secret], timestamp: nowSeconds, ...more });
}
function judge(preset: PresetName, sent: Sent, secrets = [secret], judging: Judging = {}) {
  return verdictOf(presets[preset].signature, sent, secrets, judging);
}
const withHeaders = (sent: Sent, headers: Sent['headers']): Sent => ({
  ...sent,
  headers: { ...sent.headers, ...headers },
});
const good = (preset: PresetName, fitted = 0) => {
  const { timed, id } = conductOf(preset);
  const signedId = id === undefined ? null : 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W';
  return { ok: true, timestamp: timed ? nowSeconds : null, id: signedId, secret: fitted };
};
const refused = (reason: string) => ({ ok: false, reason });
const withChanged = (text: string, at: number) =>
  `${text.slice(0, at)}${text.charAt(at) === '0' ? '1' : '0'}${text.slice(at + 1)}`;
const signsBody = (preset: PresetName) => presets[preset].signature.kind === 'hmac';

test('each believes what its sender signed, whatever the body: text, no UTF-8, nothing, 1 MiB', async () => {
  const bodies = [
    body,
    Buffer.from([0xff, 0xfe, 0, 0x80, 0x2e]),
    Buffer.alloc(0),
    Buffer.alloc(1 << 20, 'x'),
  ];
  for (const preset of presetNames) {
    for (const each of bodies) {
      assert.deepEqual(await judge(preset, send(preset, { body: each })), good(preset), preset);
    }
  }
});

test('each refuses a body of which one byte was changed, at its beginning, in its middle, at its end, or cut off', async () => {
  for (const preset of presetNames) {
    const sent = send(preset);
    for (const at of [0, body.length >> 1, body.length - 1]) {
      const changed = Buffer.from(body);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      const verdict = signsBody(preset) ? refused('no-match') : good(preset);
      assert.deepEqual(await judge(preset, { ...sent, body: changed }), verdict, `${preset} ${at}`);
    }
    for (const other of [body.subarray(1), body.subarray(0, -1), Buffer.concat([body, Buffer.from('\n')])]) {
      const verdict = await judge(preset, { ...sent, body: other });
      assert.equal(verdict.ok, !signsBody(preset), preset);
    }
  }
});

test('each refuses a signature, a time and an id of which one character was changed', async () => {
  for (const preset of presetNames) {
    const { signature, timestamp, id } = conductOf(preset);
    const sent = send(preset);
    for (const field of [signature, timestamp, id]) {
      if (field === undefined) continue;
      const value = String(sent.headers[field]);
      const from = field === signature ? Math.max(value.indexOf('='), value.indexOf(',')) + 1 : 0;
      // The padding of base64 begins where the last group ends: its last letter is that before it.
      const start = from >= value.length - 2 ? 0 : from;
      const end = value.replace(/=+$/, '').length - 1;
      for (const at of [start, (start + end) >> 1, end]) {
        const changed = withHeaders(sent, { [field]: withChanged(value, at) });
        assert.deepEqual(await judge(preset, changed), refused('no-match'), `${preset} ${field} ${at}`);
      }
      const shorter = await judge(preset, withHeaders(sent, { [field]: value.slice(0, -1) }));
      assert.equal(shorter.ok, false, `${preset} ${field}`);
    }
  }
});

test('each refuses what another secret signed', async () => {
  for (const preset of presetNames) {
    assert.deepEqual(await judge(preset, send(preset), [otherSecret]), refused('no-match'), preset);
  }
});

test('each takes several secrets, and says which of them fitted', async () => {
  for (const preset of presetNames) {
    assert.deepEqual(await judge(preset, send(preset), [otherSecret, secret]), good(preset, 1), preset);
    assert.deepEqual(await judge(preset, send(preset), [secret, otherSecret]), good(preset), preset);
  }
});

test('of several signatures it is enough that one fits; elsewhere a list is no signature', async () => {
  for (const preset of presetNames) {
    const { signature, lists } = conductOf(preset);
    if (lists && preset !== 'plain') {
      const both = send(preset, { secrets: [otherSecret, secret] });
      assert.deepEqual(await judge(preset, both), good(preset), preset);
      assert.deepEqual(await judge(preset, both, [otherSecret]), good(preset), preset);
    } else {
      const [one, other] = [secret, otherSecret].map(
        (each) => send(preset, { secrets: [each] }).headers[signature],
      );
      const both = withHeaders(send(preset), { [signature]: `${other},${one}` });
      assert.equal((await judge(preset, both)).ok, preset === 'plain', preset);
    }
  }
});

test('signatures of other versions are ignored, beside one that counts and alone', async () => {
  for (const preset of presetNames) {
    const { signature, otherVersion, lists } = conductOf(preset);
    if (otherVersion === undefined) continue;
    const value = String(send(preset).headers[signature]);
    const separator = preset === 'standard' || preset === 'svix' ? ' ' : ',';
    if (lists) {
      const beside = withHeaders(send(preset), { [signature]: `${value}${separator}${otherVersion}` });
      assert.deepEqual(await judge(preset, beside), good(preset), preset);
    }
    const time = value.startsWith('t=') ? `t=${nowSeconds},` : '';
    const alone = withHeaders(send(preset), { [signature]: `${time}${otherVersion}` });
    assert.deepEqual(await judge(preset, alone), refused('no-match'), preset);
  }
});

test('the signed time may lie 300 seconds behind or ahead and not one more, of what was signed at all', async () => {
  for (const preset of presetNames) {
    const at = (seconds: number, sent = send(preset), more: Judging = {}) =>
      judge(preset, sent, [secret], { nowSeconds: nowSeconds + seconds, ...more });
    const { timed } = conductOf(preset);
    for (const near of [300, -300]) assert.deepEqual(await at(near), good(preset), preset);
    assert.deepEqual(await at(301), timed ? refused('stale') : good(preset), preset);
    assert.deepEqual(await at(-301), timed ? refused('ahead') : good(preset), preset);
    assert.deepEqual(await at(10 ** 9, send(preset), { toleranceSeconds: 0 }), good(preset), preset);
    assert.deepEqual(await at(301, send(preset, { secrets: [otherSecret] })), refused('no-match'), preset);
  }
});

test('a needed field that is not there or empty is missing; one that came twice, or has no end, is malformed', async () => {
  for (const preset of presetNames) {
    const { signature, timestamp, id } = conductOf(preset);
    for (const field of [signature, timestamp, id]) {
      if (field === undefined) continue;
      const sent = send(preset);
      const value = String(sent.headers[field]);
      const { [field]: _, ...others } = sent.headers;
      assert.deepEqual(
        await judge(preset, { ...sent, headers: others }),
        refused('missing'),
        `${preset} ${field}`,
      );
      const having = (given: string | string[]) => judge(preset, withHeaders(sent, { [field]: given }));
      assert.deepEqual(await having(''), refused('missing'), `${preset} ${field}`);
      assert.deepEqual(await having([value, value]), refused('malformed'), `${preset} ${field}`);
      assert.deepEqual(await having([value]), refused('malformed'), `${preset} ${field}`);
      assert.deepEqual(await having(value + ' '.repeat(8192)), refused('malformed'), `${preset} ${field}`);
    }
  }
});

test('no time but decimal seconds, and no id but visible ASCII without a full stop', async () => {
  for (const preset of presetNames) {
    const { timestamp, id } = conductOf(preset);
    const wrongTimes = ['now', '-1', '1e9', `${nowSeconds}.0`, ` ${nowSeconds}`, '9'.repeat(13)];
    const wrongIds = ['a.b', 'é', 'a b', 'a\n', 'x'.repeat(513)];
    for (const [field, values] of [
      [timestamp, wrongTimes],
      [id, wrongIds],
    ] as const) {
      for (const value of field === undefined ? [] : values) {
        const verdict = await judge(preset, withHeaders(send(preset), { [String(field)]: value }));
        assert.deepEqual(verdict, refused('malformed'), `${preset} ${field} ${value.slice(0, 20)}`);
      }
    }
  }
});
