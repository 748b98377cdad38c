/**
 * Every grammar of a signature's header under anything at all: it never throws, it never believes what was not signed, it believes what
 * was, and both cryptographies say the same. Short inside `npm test`, long by `npm run fuzz`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { presets } from '../../../src/webhooks/presets.ts';
import { nodeMac } from '../../../src/webhooks/receiving/node-mac.ts';
import { prepareKeys } from '../../../src/webhooks/signature/mac-keys.ts';
import type { SignatureRule } from '../../../src/webhooks/signature/signature-rule.ts';
import { verifyByRule } from '../../../src/webhooks/signature/verify-by-rule.ts';
import { codePoint } from '../../harness/code-point.ts';
import {
  type Conduct,
  conducts,
  nowSeconds,
  type SignedPreset as PresetName,
  type Sent,
  secret,
} from '../../webhooks/presets/signed-message.ts';
import { verdictOf } from '../../webhooks/presets/verdict-of.ts';

const presetNames = Object.keys(conducts) as PresetName[];
const secondsAsked = Number(process.env.COMITY_FUZZ_SECONDS ?? '');

/** So many cases by default, or as many as fit into COMITY_FUZZ_SECONDS. */
function bounds(numRuns: number): { numRuns: number; interruptAfterTimeLimit?: number } {
  if (!(secondsAsked > 0)) return { numRuns };
  return { numRuns: Number.POSITIVE_INFINITY, interruptAfterTimeLimit: secondsAsked * 1000 };
}

const hex = '0123456789abcdef'.repeat(4);
const pieces = [
  ...[
    't',
    'v1',
    'v1a',
    'v0',
    'v2',
    'sha256',
    'sha1',
    '=',
    ',',
    ', ',
    ' ',
    '.',
    ':',
    '%',
    '&',
    '\0',
    'é',
    '\ud800',
  ],
  ...[
    't=',
    'v1=',
    'v0=',
    'v1,',
    'v1a,',
    'sha256=',
    String(nowSeconds),
    '-1',
    '1e9',
    '0',
    hex,
    hex.toUpperCase(),
  ],
  ...[
    Buffer.alloc(20).toString('base64'),
    Buffer.alloc(32).toString('base64'),
    Buffer.alloc(64).toString('base64'),
  ],
  ...['msg_1', '==', '=', '\ufffd', secret.slice(0, 12)],
];
const value = fc.oneof(
  fc.string({ unit: codePoint, maxLength: 80 }),
  fc.array(fc.constantFrom(...pieces), { maxLength: 24 }).map((parts) => parts.join('')),
);
const field = fc.oneof(
  { weight: 8, arbitrary: value },
  { weight: 1, arbitrary: fc.array(value, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.constant(undefined) },
);
const body = fc.oneof(
  fc.uint8Array({ maxLength: 100 }),
  fc
    .array(fc.constantFrom('a', '=', '&', '%', '+', '4', '%ff', '%26', 'é'), { maxLength: 30 })
    .map((parts) => Buffer.from(parts.join(''))),
);
const type = fc.constantFrom('application/json', 'application/x-www-form-urlencoded', 'a;b', '');
const url = fc.oneof(
  fc.constantFrom(
    'https://a/',
    'http://[::1]:80?x',
    'a',
    '',
    'https://a/?bodySHA256=',
    `https://a/?bodySHA256=${hex}`,
  ),
  value,
);

/** Whatever the sender's rule needs, each of them anything. */
function madeUp(rule: SignatureRule, values: readonly Sent['headers'][string][], contentType: string) {
  const names = [rule.header];
  if (rule.kind === 'hmac' && rule.id !== undefined) names.push(rule.id);
  if (rule.kind === 'hmac' && rule.timestamp !== undefined && 'header' in rule.timestamp) {
    names.push(rule.timestamp.header);
  }
  const headers: Record<string, string | readonly string[]> = { 'content-type': contentType };
  for (const [at, name] of names.entries()) if (values[at] !== undefined) headers[name] = values[at];
  return headers;
}

test('nothing that is made up makes it throw, and none of it is believed', () => {
  const prepared = presetNames.map((name) => {
    const rule = presets[name].signature;
    return { name, rule, keys: prepareKeys(rule, [secret], nodeMac) };
  });
  const fields = fc.tuple(field, field, field);
  const any = fc.property(fields, body, type, url, (values, octets, contentType, called) => {
    for (const { name, rule, keys } of prepared) {
      const headers = madeUp(rule, values as readonly string[], contentType);
      const message = { body: octets, header: (each: string) => headers[each], url: called };
      const verdict = verifyByRule(rule, message, keys, { primitives: nodeMac, toleranceSeconds: 0 });
      assert.ok(!(verdict instanceof Promise) && !verdict.ok, name);
    }
  });
  fc.assert(any, bounds(600));
});

test('what is made up is refused for the same reason by both cryptographies', async () => {
  const any = fc.asyncProperty(
    fc.constantFrom(...presetNames),
    fc.tuple(field, field, field),
    body,
    type,
    url,
    async (name, values, octets, contentType, called) => {
      const rule = presets[name].signature;
      const headers = madeUp(rule, values as readonly string[], contentType);
      // verdictOf compares them.
      assert.ok(!(await verdictOf(rule, { body: octets, headers, url: called }, [secret])).ok);
    },
  );
  await fc.assert(any, bounds(120));
});

/** One character of one signed field put in, taken out or replaced. */
type Edit = {
  readonly field: number;
  readonly at: number;
  readonly kind: 'put' | 'take' | 'replace';
  readonly text: string;
};
const edit: fc.Arbitrary<Edit> = fc.record({
  field: fc.nat(2),
  at: fc.nat(200),
  kind: fc.constantFrom('put', 'take', 'replace'),
  text: fc.constantFrom('0', 'a', 'A', '=', ',', ' ', '.', '/', 'é', 't', 'v'),
});

function edited(sent: Sent, name: PresetName, { field: which, at, kind, text }: Edit): Sent {
  const { signature, timestamp = signature, id = signature } = conducts[name] as Conduct;
  const target = [signature, timestamp, id][which] ?? signature;
  const old = String(sent.headers[target]);
  const from = at % (old.length + (kind === 'put' ? 1 : 0));
  const changed =
    old.slice(0, from) + (kind === 'take' ? '' : text) + old.slice(kind === 'put' ? from : from + 1);
  return { ...sent, headers: { ...sent.headers, [target]: changed } };
}

test('what was signed is believed, and after one edit only where it still says the same', async () => {
  const any = fc.asyncProperty(
    fc.constantFrom(...presetNames),
    fc.uint8Array({ maxLength: 60 }),
    edit,
    async (name, octets, how) => {
      const { signature } = presets[name];
      const sent = (conducts[name] as Conduct).send({
        body: octets,
        secrets: [secret],
        timestamp: nowSeconds,
      });
      assert.ok((await verdictOf(signature, sent, [secret])).ok, name);
      const other = edited(sent, name, how);
      const verdict = await verdictOf(signature, other, [secret]);
      if (verdict.ok) assert.deepEqual(meaning(other, name), meaning(sent, name), name);
    },
  );
  await fc.assert(any, bounds(120));
});

/** The fields without what a reader of the grammar may pass over: the case of hexadecimal digits, and blanks around entries of a list. */
function meaning({ headers }: Sent, name: PresetName): readonly string[] {
  return Object.values(headers).map((each) => {
    const digits = String(each).replaceAll(/[0-9a-fA-F]{64}/g, (found) => found.toLowerCase());
    return (conducts[name] as Conduct).lists ? digits.replaceAll(' ', '') : digits;
  });
}
