/** What the document says of receiving webhooks: its paths, their statuses and codes, and how each sender signs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeclaredSender } from '../../src/config/senders.ts';
import { senderOf, timestamped } from '../webhooks/received/walked-inbox.ts';
import {
  documentOf,
  faults,
  type Item,
  operation,
  operationsOf,
  resolved,
  shopCollections,
} from './fixture.ts';
import { complaintsAbout } from './official-schema.ts';
import { codesOf, methodsOf, type Statuses, statusesOf } from './statuses.ts';

const slack = senderOf('chat-eu');
const challenge = { json: '/type', is: 'url_verification', answer: 'challenge', echo: '/challenge' };
const standard = senderOf(
  'partner',
  { kind: 'inbox' },
  {
    ...{ ...timestamped, header: 'webhook-signature', prefix: 'v1,', separator: ' ', encoding: 'base64' },
    ...{ signed: '{id}.{timestamp}.{body}', timestamp: { header: 'webhook-timestamp' }, id: 'webhook-id' },
  },
);
const senders = new Map<string, DeclaredSender>(
  [
    senderOf('billing'),
    { ...slack, rule: { ...slack.rule, challenge } },
    standard,
    senderOf('forge', { kind: 'inbox' }, { kind: 'token', header: 'x-gitlab-token' }),
  ].map((sender) => [sender.name, sender]),
);
const receiving = { senders, receivedBytesMax: 1000 };
const document = documentOf(shopCollections, '3.2', { receiving });
const base = '/api/v1';

const table: Statuses = [
  ['post', 'webhooks/billing', '204 413'],
  ['post', 'webhooks/chat-eu', '200 204 413'],
  ['get', 'received', '200 304 401 403 406 412 429'],
  ['query', 'received', '200 304 401 403 406 412 413 415 422 429'],
  ['get', 'received/{id}', '200 304 401 403 404 406 412 429'],
  ['patch', 'received/{id}', '200 202 204 401 403 404 406 409 412 413 415 422 429'],
  ['get', 'received/{id}/body', '200 304 401 403 404 406 412 429'],
  ['get', 'received/{id}/attempts', '200 304 401 403 404 406 412 429'],
  ['post', 'received/{id}/replay', '202 401 403 404 406 409 412 413 415 422 429'],
  ['post', 'received/replay', '200 401 403 406 412 413 415 422 429'],
  ['get', 'senders', '200 304 401 403 406 412 429'],
  ['get', 'senders/{name}', '200 304 401 403 404 406 412 429'],
  ['post', 'senders/{name}/rotate-secret', '200 401 403 404 406 409 412 413 415 422 429'],
];

test('gives each operation the statuses that it can end in', () => {
  for (const [method, path, expected] of table) {
    assert.equal(statusesOf(document, method, `${base}/${path}`).join(' '), expected, `${method} ${path}`);
  }
});

test('tells which codes stand behind a refused webhook and behind the conflicts', () => {
  const refused = codesOf(document, 'post', `${base}/webhooks/billing`, 400);
  assert(refused.includes('signature_invalid') && refused.includes('signature_stale'), String(refused));
  const codes = (path: string) => codesOf(document, 'post', `${base}/${path}`, 409);
  assert.deepEqual(codes('received/{id}/replay'), ['content_unavailable', 'sender_unavailable']);
  assert.deepEqual(codes('senders/{name}/rotate-secret'), ['sender_secret_fixed']);
});

test('names the header fields that each sender signs with, and no credential', () => {
  const fieldsOf = (name: string) => {
    const { parameters, security } = operation(document, 'post', `${base}/webhooks/${name}`) as {
      parameters: readonly Item[];
      security: readonly Item[];
    };
    assert.deepEqual(security, [{}]);
    return parameters
      .map((parameter) => resolved(document, parameter))
      .filter(({ required }) => required === true)
      .map((parameter) => parameter.name);
  };
  assert.deepEqual(fieldsOf('billing'), ['service-signature']);
  assert.deepEqual(fieldsOf('partner'), ['webhook-signature', 'webhook-timestamp', 'webhook-id']);
  assert.deepEqual(fieldsOf('forge'), ['x-gitlab-token']);
});

test('describes no operation of the inbox and of the senders that there is not', () => {
  const methods = (path: string) => methodsOf(document, path);
  assert.equal(methods('received'), 'get query');
  assert.equal(methods('received/{id}'), 'get patch');
  assert.equal(methods('received/bulk-delete'), '');
  assert.equal(methods('webhooks/billing'), 'post');
  assert.equal(methods('senders'), 'get');
});

test('gives examples that fit their schemas', () => {
  let examined = 0;
  for (const { path, method, item } of operationsOf(document)) {
    if (!/\/(?:received|senders|webhooks)\b/.test(path)) continue;
    const { requestBody, responses } = item as { requestBody?: Item; responses: Record<string, unknown> };
    const bodies = [requestBody, ...Object.values(responses).map((response) => resolved(document, response))];
    for (const { content = {} } of bodies.filter((body): body is Item => body !== undefined)) {
      for (const part of Object.values(content as Record<string, Item>)) {
        const several = Object.values((part.examples ?? {}) as Record<string, unknown>);
        const examples = [
          ...('example' in part ? [part.example] : []),
          ...several.map((example) => resolved(document, example).value),
        ];
        for (const example of examples) {
          assert.deepEqual(faults(document, part.schema, example), [], `${method} ${path}`);
          examined += 1;
        }
      }
    }
  }
  assert(examined >= 10, String(examined));
});

test('follows the official schema, with ids of their own and no component that nothing uses', async () => {
  const made = documentOf(new Map(), '3.2', { receiving });
  assert.equal(await complaintsAbout(made), undefined);
  const ids = operationsOf(made).map(({ item }) => item.operationId);
  assert.equal(new Set(ids).size, ids.length);
  const text = JSON.stringify(made);
  for (const [kind, items] of Object.entries(made.components as Record<string, Item>)) {
    if (kind === 'securitySchemes') continue;
    for (const name of Object.keys(items)) assert(text.includes(`"#/components/${kind}/${name}"`), name);
  }
});

test('says nothing of receiving where the program receives nothing', () => {
  const paths = operationsOf(documentOf(shopCollections)).map(({ path }) => path);
  assert(!paths.some((path) => /(?:received|senders|\/webhooks\/)/.test(path)));
});
