/** The presets as data: sound by themselves, before any message. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { presetNames, presets } from '../../../src/webhooks/presets.ts';
import { nodeMac } from '../../../src/webhooks/receiving/node-mac.ts';
import type { Place } from '../../../src/webhooks/sender-rule.ts';
import { prepareKeys } from '../../../src/webhooks/signature/mac-keys.ts';
import type { SignatureRule } from '../../../src/webhooks/signature/signature-rule.ts';

/** What the declaration must name where a preset leaves it empty. */
function named(rule: SignatureRule): SignatureRule {
  const entries = Object.entries(rule).map(([member, value]) => [
    member,
    value === '' && member !== 'prefix' ? 'x' : value,
  ]);
  return Object.fromEntries(entries) as SignatureRule;
}

/** A field, or a member of the body. */
const token = /^[a-z0-9-]+$|^\//;

test('there is a preset for each name, whose rule can be verified by', () => {
  assert.deepEqual(Object.keys(presets).sort(), [...presetNames].sort());
  for (const name of presetNames) prepareKeys(named(presets[name].signature), ['whsec_c2VjcmV0'], nodeMac);
});

test('names of fields are in lower case, JSON Pointers begin with a slash, and nothing is kept twice', () => {
  for (const name of presetNames) {
    const { signature, dedupe, type, keep } = presets[name];
    const places: readonly Place[] = [...dedupe, ...type.flat()];
    const fields = places.flatMap((place) => ('header' in place ? [place.header] : []));
    const signed = 'signed' in signature ? [signature.id ?? signature.header] : [];
    for (const field of [...fields, ...keep, ...signed, signature.header]) assert.match(field, token, name);
    for (const place of places) if ('json' in place) assert.ok(place.json.startsWith('/'), name);
    assert.equal(new Set(keep).size, keep.length, name);
  }
});

test('no field that proves something is kept', () => {
  for (const name of presetNames) {
    const { signature, keep } = presets[name];
    assert.ok(!keep.includes(signature.header), name);
    for (const field of keep) assert.doesNotMatch(field, /signature|hmac|authorization|cookie/, name);
  }
});

test('every field that a message is known by is kept with it', () => {
  for (const name of presetNames) {
    const { dedupe, keep } = presets[name];
    // A token that identifies its message is no less a credential.
    const tokens = presets[name].signature.kind === 'jwt' ? [presets[name].signature.header] : [];
    for (const place of dedupe)
      if ('header' in place) assert.ok([...keep, ...tokens].includes(place.header), name);
  }
});

/**
 * Twitch says so: its documentation lets messages be ten minutes old. PayPal repeats messages for three days, and does not say that it signs
 * them again.
 */
const longer: Readonly<Record<string, number>> = { twitch: 600, paypal: 0 };

test('senders that sign a time have a tolerance of 300 seconds, but for one that says more', () => {
  for (const name of presetNames) {
    const { signature } = presets[name];
    if (!('signed' in signature)) continue;
    assert.equal(
      signature.toleranceSeconds,
      signature.timestamp === undefined ? 0 : (longer[name] ?? 300),
      name,
    );
  }
});

test('the guides name every preset', () => {
  const table = readFileSync('docs/guides/receive-webhooks.md', 'utf8');
  const list = readFileSync('docs/guides/verify-webhooks.md', 'utf8');
  for (const name of presetNames) {
    assert.match(table, new RegExp(`^\\| \`${name}\` +\\|`, 'm'));
    assert.ok(list.includes(`\`${name}\``), name);
  }
});
