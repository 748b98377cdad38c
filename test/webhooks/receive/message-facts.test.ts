/** What a rule says of a message that was verified: keys, types and challenges out of any octets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { challengeCharactersMax } from '../../../src/webhooks/receive/challenge.ts';
import type { Message } from '../../../src/webhooks/receive/message.ts';
import {
  dedupeKeyCharactersMax,
  factsOf,
  keptFields,
  typeCharactersMax,
  valueAt,
} from '../../../src/webhooks/receive/message-facts.ts';
import type { SenderRule } from '../../../src/webhooks/sender-rule.ts';

const rule: SenderRule = {
  signature: { kind: 'token', header: 'x-token' },
  dedupe: [{ header: 'x-id' }, { json: '/id' }, { form: 'id' }],
  type: [[{ header: 'x-event' }, { json: '/action' }], [{ json: '/type' }], [{ form: 'type' }]],
  challenge: { json: '/type', is: 'url_verification', answer: 'challenge', echo: '/challenge' },
  keep: ['x-event', 'x-id'],
};

type Fields = Readonly<Record<string, string | readonly string[]>>;

const octetsOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function message(body: string | Uint8Array, fields: Fields = {}): Message {
  return { body: typeof body === 'string' ? octetsOf(body) : body, header: (name) => fields[name] };
}

function facts(body: string | Uint8Array, fields: Fields = {}, places: Partial<SenderRule> = {}) {
  return factsOf({ ...rule, ...places }, message(body, fields));
}

const form = { 'content-type': 'Application/X-WWW-Form-Urlencoded; charset=utf-8' };

test('takes the first place that holds a text for the key', () => {
  assert.equal(facts('{"id":"evt_1"}', { 'x-id': ' d-1 ' }).key, 'd-1');
  assert.equal(facts('{"id":"evt_1"}').key, 'evt_1');
  assert.equal(facts('{"id":"evt_1"}', { 'x-id': '' }).key, 'evt_1');
  assert.equal(facts('{"id":"evt_1"}', { 'x-id': ['d-1', 'd-2'] }).key, 'evt_1');
  assert.equal(facts('a=1&id=f%2D1&id=2', form).key, 'f-1');
  assert.equal(facts('{"id":42}').key, '42');
});

test('finds no key where none can be told from another', () => {
  const bodies = [
    '',
    '{}',
    '{"id":""}',
    '{"id":null}',
    '{"id":true}',
    '{"id":["evt_1"]}',
    '{"id":{"id":"evt_1"}}',
    '{"id":"evt_1"',
    '"id"',
    '[1]',
    'id=f-1',
    // Parsed, each of these is the same as another.
    '{"id":9007199254740993}',
    '{"id":1.5}',
    '{"id":1e999}',
    '{"id":"\\ud800"}',
  ];
  for (const body of bodies) {
    const { key, oversizedKey } = facts(body);
    assert.deepEqual({ body, key, oversizedKey }, { body, key: undefined, oversizedKey: undefined });
  }
  assert.equal(
    facts(Uint8Array.of(0x7b, 0x22, 0x69, 0x64, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d)).key,
    undefined,
  );
  for (const body of ['id=%ff', 'id=%', 'id', 'id=', '&&', 'ID=1'])
    assert.equal(facts(body, form).key, undefined);
  assert.equal(facts(Uint8Array.of(0x69, 0x64, 0x3d, 0xff), form).key, undefined);
});

test('says of what a digest is to be made where a key is too long or not printable', () => {
  const longest = 'k'.repeat(dedupeKeyCharactersMax);
  assert.deepEqual(
    [facts(JSON.stringify({ id: longest })).key, facts(JSON.stringify({ id: `${longest}k` })).oversizedKey],
    [longest, `${longest}k`],
  );
  for (const id of ['ärger', 'a\nb', 'a\u0000', '\u007f']) {
    const { key, oversizedKey } = facts(JSON.stringify({ id }));
    assert.deepEqual([key, oversizedKey], [undefined, id]);
  }
});

test('joins the texts of the first list that has them all to the type', () => {
  assert.equal(facts('{"action":"opened"}', { 'x-event': 'issues' }).type, 'issues.opened');
  assert.equal(facts('{"type":"a.b"}', { 'x-event': 'issues' }).type, 'a.b');
  assert.equal(facts('type=c+d', form).type, 'c d');
  assert.equal(facts('{}').type, null);
  assert.equal(
    facts(JSON.stringify({ type: 't'.repeat(typeCharactersMax) })).type?.length,
    typeCharactersMax,
  );
  assert.equal(facts(JSON.stringify({ type: 't'.repeat(typeCharactersMax + 1) })).type, null);
  assert.equal(facts('{"type":"ö"}').type, null);
});

test('answers a challenge with the member that it asks for, and no other message', () => {
  const asked = (challenge: unknown, type = 'url_verification') =>
    facts(JSON.stringify({ type, challenge })).challenge;
  assert.deepEqual(asked('c1'), { name: 'challenge', value: 'c1', proof: undefined });
  assert.deepEqual(asked(7), { name: 'challenge', value: 7, proof: undefined });
  assert.equal(asked('c1', 'event_callback'), undefined);
  assert.equal(asked({}), undefined);
  const longest = 'c'.repeat(challengeCharactersMax);
  assert.equal(asked(longest)?.value, longest);
  assert.equal(asked('c'.repeat(challengeCharactersMax + 1)), undefined);
  const { challenge: _, ...withoutChallenge } = rule;
  const body = '{"type":"url_verification","challenge":"c1"}';
  assert.equal(factsOf(withoutChallenge, message(body)).challenge, undefined);
});

test('reads the JSON of a form from the field that the sender names, short or long', () => {
  const inForm = { jsonInForm: 'payload', dedupe: [{ json: '/id' }], type: [[{ json: '/type' }]] };
  const form = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
  for (const length of [3, 300_000]) {
    const json = JSON.stringify({ id: 'evt 1+é', type: 'a.b', pad: '%'.repeat(length) });
    const body = `x=1&${new URLSearchParams({ payload: json })}`;
    const { type, oversizedKey } = facts(body, form, inForm);
    assert.deepEqual({ type, oversizedKey }, { type: 'a.b', oversizedKey: 'evt 1+é' }, String(length));
    assert.equal(facts(body, {}, inForm).type, null, 'no form');
    assert.equal(facts(json, { 'content-type': 'application/json' }, inForm).type, 'a.b');
    assert.equal(facts(`payload=%zz${'x'.repeat(length)}`, form, inForm).type, null);
    assert.equal(facts(`other=${'x'.repeat(length)}`, form, inForm).type, null);
  }
});

test('follows JSON Pointers as RFC 6901 has them, and to nothing that the body did not hold', () => {
  const body = '{"a/b":1,"m~n":2,"~1":3,"":4,"list":[5,6],"__proto__":{"own":7},"text":"x"}';
  const at = (json: string, content = body) => facts(content, {}, { dedupe: [{ json }] }).key;
  const found = { '/a~1b': '1', '/m~0n': '2', '/~01': '3', '/': '4', '/list/1': '6', '/__proto__/own': '7' };
  for (const [pointer, value] of Object.entries(found)) assert.equal(at(pointer), value, pointer);
  const nowhere = [
    ...['/list/01', '/list/-', '/list/length', '/list/2', '/text/0', '/text/length', '/constructor/name'],
    ...['/toString', '/list/map/name', 'a', '/a/b', '/__proto__'],
  ];
  for (const pointer of nowhere) assert.equal(at(pointer), undefined, pointer);
  assert.equal(at('', '"whole"'), 'whole');
  for (const pointer of ['/toString', '/__proto__', '/constructor'])
    assert.equal(valueAt({}, pointer), undefined);
  assert.equal(at('/id', '\ufeff{"id":"behind a BOM"}'), 'behind a BOM');
});

test('outlives JSON that is nested as deep as a body can be', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  assert.deepEqual(facts(deep), {
    key: undefined,
    oversizedKey: undefined,
    type: null,
    challenge: undefined,
  });
  assert.equal(facts(`{"deep":${deep},"id":"evt_1"}`).key, 'evt_1');
});

test('keeps the fields of the rule and no others', () => {
  const fields = { 'x-event': 'issues', 'x-id': ['1', '2'], cookie: 'c=1' };
  assert.deepEqual(keptFields(rule, message('', fields)), { 'x-event': 'issues', 'x-id': '1, 2' });
});

test('has bounded facts and throws for no octets and no fields', () => {
  // Fields are octets, each of which Node makes a character.
  const text = fc.uint8Array({ maxLength: 12 }).map((units) => String.fromCharCode(...units));
  const field = fc.option(fc.oneof(text, fc.array(text, { maxLength: 2 })), { nil: undefined });
  const member = fc.oneof(text, fc.double(), fc.constantFrom(null, true, '', [], {}, 'url_verification'));
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 64 }),
    fc
      .record({ id: member, type: member, challenge: member })
      .map((value) => octetsOf(JSON.stringify(value))),
    fc.record({ id: text, type: text }).map((value) => octetsOf(`id=${value.id}&type=${value.type}`)),
  );
  fc.assert(
    fc.property(body, field, field, fc.boolean(), (octets, id, event, isForm) => {
      const fields = {
        'x-id': id,
        'x-event': event,
        'content-type': isForm ? form['content-type'] : undefined,
      };
      const found = factsOf(rule, { body: octets, header: (name) => fields[name as keyof typeof fields] });
      assert.match(found.key ?? 'k', /^[ -~]{1,256}$/);
      assert.match(found.type ?? 't', /^[ -~]{1,200}$/);
      assert.ok(found.key === undefined || found.oversizedKey === undefined);
    }),
    { numRuns: 500 },
  );
});
