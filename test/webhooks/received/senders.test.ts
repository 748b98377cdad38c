/** The senders as administrators see them, and the rotation of their secrets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SecretName, SenderSecret } from '../../../src/webhooks/receiving/sender-secrets.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { openInbox, senderOf, timestamped } from './walked-inbox.ts';

const url = new URL('https://user:secret@books.example/hooks?token=hidden');
const forwarded = senderOf('partner', {
  ...{ kind: 'forward', url, scheme: 'standard', secretVariable: 'PARTNER_FORWARD_SECRET', headers: {} },
});
const senders = [
  senderOf('billing'),
  senderOf('forge', { kind: 'inbox' }, { kind: 'token', header: 'x-token' }),
  { ...forwarded, rule: { ...forwarded.rule, signature: { ...timestamped, key: 'base64' as const } } },
  senderOf('fixed'),
];

type Rotated = SecretName & { readonly secret: string | undefined; readonly overlapMs: number };
const rotated: Rotated[] = [];
const stood = new Map<string, readonly SenderSecret[]>();
let refreshed = 0;

const room = openInbox(await openEmbedded(), {
  senders,
  secrets: {
    of: ({ sender, use }) => stood.get(`${sender}/${use}`) ?? [],
    source: ({ sender }) => (sender === 'fixed' ? 'environment' : 'store'),
    refresh: async () => {
      refreshed += 1;
    },
    rotate: async (name, { secret, overlapMs }) => {
      rotated.push({ ...name, secret, overlapMs });
      return { secret: secret ?? 'whsec_bWFkZQ==' };
    },
  },
});
const rotate = (name: string, json?: object) =>
  room.ask('root', 'POST', `senders/${name}/rotate-secret`, json === undefined ? {} : { json });

test('pages the declared senders as any list', async () => {
  const { json } = await room.ask('root', 'GET', 'senders');
  const names = json.items.map(({ name }: { name: string }) => name);
  const first = await room.ask('root', 'GET', 'senders?limit=1');
  assert.deepEqual(
    first.json.items.map(({ name }: { name: string }) => name),
    names.slice(0, 1),
  );
  const rest = await room.ask('root', 'GET', `senders?cursor=${first.json.nextCursor}`);
  assert.deepEqual(
    rest.json.items.map(({ name }: { name: string }) => name),
    names.slice(1),
  );
  assert.equal((await room.ask('root', 'GET', 'senders?limit=0')).status, 400);
});

test('lists the declared senders to administrators alone', async () => {
  const { status, json } = await room.ask('root', 'GET', 'senders');
  assert.equal(status, 200);
  assert.deepEqual(
    json.items.map(({ name, handOn }: { name: string; handOn: { kind: string } }) => [name, handOn.kind]),
    [
      ['billing', 'handler'],
      ['forge', 'inbox'],
      ['partner', 'forward'],
      ['fixed', 'handler'],
    ],
  );
  for (const path of ['senders', 'senders/billing']) {
    assert.equal((await room.ask('ada', 'GET', path)).status, 403);
    assert.equal((await room.ask(undefined, 'GET', path)).status, 401);
  }
  assert.equal((await room.ask('ada', 'POST', 'senders/billing/rotate-secret')).status, 403);
  assert.equal((await room.ask('root', 'GET', 'senders/nobody')).status, 404);
  assert.equal((await rotate('nobody')).status, 404);
});

test('shows how a sender signs, how many secrets are good and until when, and no secret', async () => {
  const until = room.clock() + 60_000;
  stood.set('billing/receive', [
    { secret: 'whsec_new', until: null },
    { secret: 'whsec_old', until },
    { secret: 'whsec_over', until: room.clock() - 1 },
  ]);
  const { json, content } = await room.ask('root', 'GET', 'senders/billing');
  assert.deepEqual(json, {
    name: 'billing',
    description: '',
    preset: null,
    path: '/api/v1/webhooks/billing',
    signature: {
      ...{ kind: 'hmac', header: 'service-signature', hash: 'sha256', encoding: 'hex' },
      toleranceSeconds: 300,
    },
    handOn: { kind: 'handler' },
    schedule: [5, 30],
    inFlightMax: null,
    secretSource: 'store',
    secretVariable: 'BILLING_WEBHOOK_SECRET',
    secretCount: 2,
    oldSecretsUntil: new Date(until).toISOString(),
  });
  assert(!content.includes('whsec_'));
});

test('has another entity tag once an old secret is over', async () => {
  const tag = async () => (await room.ask('root', 'GET', 'senders/billing')).field('ETag');
  const before = await tag();
  assert.equal(await tag(), before);
  room.moveClock(61);
  assert.notEqual(await tag(), before);
});

test('shows where messages are forwarded without what a URL may keep secret', async () => {
  const { json } = await room.ask('root', 'GET', 'senders/partner');
  assert.deepEqual(json.handOn, {
    ...{ kind: 'forward', url: 'https://books.example/hooks', scheme: 'standard' },
    ...{ secretSource: 'store', secretVariable: 'PARTNER_FORWARD_SECRET' },
    ...{ secretCount: 0, oldSecretsUntil: null },
  });
  const { json: token } = await room.ask('root', 'GET', 'senders/forge');
  assert.deepEqual(token.signature, { kind: 'token', header: 'x-token' });
});

test('makes a secret, or takes the one that is given, and knows it before it answers', async () => {
  const before = refreshed;
  const made = await rotate('billing');
  assert.deepEqual(
    [made.status, made.json],
    [200, { sender: 'billing', use: 'receive', secret: 'whsec_bWFkZQ==' }],
  );
  const given = await rotate('forge', { secret: 'theirs', overlapSeconds: 3600 });
  assert.deepEqual(given.json, { sender: 'forge', use: 'receive', secret: 'theirs' });
  const forward = await rotate('partner', { use: 'forward', overlapSeconds: 1 });
  assert.equal(forward.json.use, 'forward');
  assert.deepEqual(rotated.splice(0), [
    { sender: 'billing', use: 'receive', secret: undefined, overlapMs: 0 },
    { sender: 'forge', use: 'receive', secret: 'theirs', overlapMs: 3_600_000 },
    { sender: 'partner', use: 'forward', secret: undefined, overlapMs: 1000 },
  ]);
  assert.equal(refreshed, before + 3);
});

test('refuses what cannot be rotated, and a secret that the sender’s rule cannot use, without repeating it', async () => {
  const answers: string[] = [];
  for (const [name, json] of [
    ['fixed', {}],
    ['billing', { use: 'forward' }],
    ['partner', { secret: 'no base64!' }],
    ['partner', { use: 'forward', secret: 'no_base64' }],
    ['billing', { secret: '' }],
    ['billing', { secret: 'two\nlines' }],
    ['billing', { secret: 'x'.repeat(1025) }],
    ['billing', { overlapSeconds: 86_401 }],
    ['billing', { use: 'both' }],
  ] as const) {
    const { status, json: body, content } = await rotate(name, json);
    answers.push(`${status} ${body.code} ${body.errors?.[0]?.pointer ?? ''}`.trim());
    if ('secret' in json && json.secret !== '') assert(!content.includes(json.secret), json.secret);
  }
  assert.deepEqual(answers, [
    '409 sender_secret_fixed',
    '422 validation_failed /use',
    '422 validation_failed /secret',
    '422 validation_failed /secret',
    '422 validation_failed /secret',
    '422 validation_failed /secret',
    '422 validation_failed /secret',
    '422 validation_failed /overlapSeconds',
    '422 validation_failed /use',
  ]);
  assert.deepEqual(rotated, []);
  const { json } = await rotate('fixed');
  assert.match(json.error, /the environment variable FIXED_WEBHOOK_SECRET sets /);
});

test('takes base64 of a scheme that needs it', async () => {
  const secret = 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz';
  assert.equal((await rotate('partner', { secret })).json.secret, secret);
});
