/** Bodies of an endpoint's own form (§6.17): JSON whatever the values are, bounded, signed as sent, without what is omitted. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { eventDocument } from '../../../src/model/event.ts';
import {
  createShape,
  templateCharactersMax,
  templatedBytesMax,
  templateFault,
} from '../../../src/webhooks/sending/body-template.ts';
import { startDeliveryReceiver, verify } from '../../harness/delivery-receiver.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { claimOf, current, startSender } from './fixture.ts';

const event = (object: unknown) =>
  eventDocument('evt_1', 'products.created', Date.UTC(2030, 0, 2), JSON.stringify(object));

function bodyOf(template: string, object: unknown): unknown {
  assert.equal(templateFault(template), undefined);
  const text = createShape({ template })(event(object))?.text;
  return text === undefined ? undefined : JSON.parse(text);
}

test('puts values into strings as text, and elsewhere as they are', () => {
  const object = { name: 'Käse "Brie"\n</script>', price: 3.5, tags: ['a', 'b'], size: { w: 1 }, gone: null };
  const template = `{
    "text": "{{type}}: {{ data.object.name }} at {{data.object.price}}, {{data.object.tags.1}}{{data.object.none}}{{data.object.gone}}",
    "price": {{data.object.price}}, "size": {{data.object.size}}, "none": {{data.object.none}}, "at": {{created}},
    "{{id}}": "{{data.object.size}}"
  }`;
  assert.deepEqual(bodyOf(template, object), {
    text: 'products.created: Käse "Brie"\n</script> at 3.5, b',
    ...{ price: 3.5, size: { w: 1 }, none: null, at: Date.UTC(2030, 0, 2) / 1000 },
    evt_1: '{"w":1}',
  });
});

const faults: readonly (readonly [title: string, template: string])[] = [
  ['text that is no JSON', 'hello {{type}}'],
  ['an unknown preset', 'slak'],
  ['a placeholder within an escape', '{"a": "\\{{type}}"}'],
  ['a placeholder within a Unicode escape', '{"a": "\\u00{{type}}41"}'],
  ['a placeholder within a number', '{"a": 1{{created}}}'],
  ['a placeholder within a word', '{"a": nul{{type}}}'],
  ['a name that would be a value', '{ {{type}}: 1}'],
  ['a string that does not end', '{"a": "{{type}}}'],
  ['a placeholder that names no member of events', '{"a": "{{secret}}"}'],
  ['a placeholder of an inherited name', '{"a": "{{constructor.name}}"}'],
];

for (const [title, template] of faults) {
  test(`refuses ${title}`, () => assert.match(templateFault(template) ?? '', /^must /));
}

test('is JSON with any values, of any members, wherever a placeholder may stand', () => {
  const template =
    '[{{data.object}}, "{{data.object}}", {"\\\\{{data.object.a}}\\"{{data.object.a}}": {{data.object.b}}}]';
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('a', 'b', '__proto__', '{{type}}', '"'), fc.jsonValue()),
      (object) => {
        const body = bodyOf(template, object) as unknown[];
        assert.deepEqual(body[0], JSON.parse(JSON.stringify(object)));
        for (const preset of ['slack', 'discord', 'teams']) assert.ok(bodyOf(preset, object));
      },
    ),
  );
});

test('presets say what happened as plain text, within the bounds of each chat', () => {
  const object = {
    ...{ id: 'prd_1', name: '<!channel> @everyone [x](https://evil.example)', price: 3, parts: [1] },
    ...Object.fromEntries(
      Array.from({ length: 50 }, (_, at) => [`m${at}${'n'.repeat(200)}`, '😀'.repeat(999)]),
    ),
  };
  const slack = bodyOf('slack', object) as {
    text: string;
    blocks: { text: { type: string; text: string } }[];
  };
  assert.equal(slack.text, 'products.created');
  assert.equal(slack.blocks[0]?.text.type, 'plain_text');
  const shown = slack.blocks[0]?.text.text ?? '';
  assert.match(
    shown,
    /^products\.created\nid: prd_1\nname: <!channel> @everyone \[x\]\(https:\/\/evil\.example\)\nprice: 3\nm0n/,
  );
  assert.ok(shown.length < 2000 && shown.isWellFormed());
  const discord = bodyOf('discord', object) as { content: string; allowed_mentions: unknown };
  assert.deepEqual([discord.content, discord.allowed_mentions], [shown, { parse: [] }]);
  const teams = JSON.stringify(bodyOf('teams', object));
  assert.ok(teams.includes('"type":"TextRun","text":"id: prd_1\\nname: <!channel>'));
});

test('makes bodies up to their bound, and none beyond, however a template grows', () => {
  const frame = '{"a":"{{data.object.a}}"}';
  const room = templatedBytesMax - frame.length + '{{data.object.a}}'.length;
  assert.ok(bodyOf(frame, { a: 'x'.repeat(room) }));
  assert.equal(bodyOf(frame, { a: 'x'.repeat(room + 1) }), undefined);
  assert.equal(bodyOf(frame, { a: 'ä'.repeat(room / 2 + 1) }), undefined);
  const many = '{{data.object.a}}'.repeat(Math.floor((templateCharactersMax - 9) / 17));
  const started = performance.now();
  assert.equal(bodyOf(`{"a":"${many}"}`, { a: '\u0001'.repeat(1_000_000) }), undefined);
  assert.ok(performance.now() - started < 5000);
});

test('signs what is sent, of each scheme, without omitted members', async () => {
  const sender = await startSender(await openEmbedded());
  const { url: origin, received } = await startDeliveryReceiver();
  const url = new URL('/hooks', origin);
  const eventId = await sender.post('{"id":"prd_1","name":"Käse","cost":1}');
  for (const scheme of ['timestamped', 'plain', 'standard'] as const) {
    const more = {
      omit: ['cost', 'none'],
      template: '{"n":"{{data.object.name}}","c":{{data.object.cost}}}',
    };
    await sender.send(claimOf({ scheme, url, eventId, more }));
    const last = received.at(-1);
    assert.equal(last?.body.toString(), '{"n":"Käse","c":null}');
    const mac = createHmac('sha256', current)
      .update(last?.body ?? '')
      .digest('hex');
    if (scheme === 'plain') assert.equal(last?.headers['x-hub-signature-256'], `sha256=${mac}`);
    if (scheme === 'standard' && last !== undefined) assert.ok(verify(last, current));
  }
  await sender.send(claimOf({ scheme: 'standard', url, eventId, more: { omit: ['cost'] } }));
  assert.deepEqual(JSON.parse(String(received.at(-1)?.body)).data, { id: 'prd_1', name: 'Käse' });
  const large = await sender.post(JSON.stringify({ id: 'prd_2', name: 'x'.repeat(templatedBytesMax) }));
  const count = received.length;
  const more = { template: '{"n":"{{data.object.name}}"}' };
  const { outcome } = await sender.send(claimOf({ scheme: 'plain', url, eventId: large, more }));
  assert.deepEqual([outcome.kind, received.length], ['too_large', count]);
});
