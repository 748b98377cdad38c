/** What the document says of sending webhooks: its paths, their statuses and codes, and what receivers are sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentOf, faults, type Item, isOpen, operationsOf, resolved, shopCollections } from './fixture.ts';
import { codesOf, methodsOf, type Statuses, testStatuses } from './statuses.ts';

const document = documentOf(shopCollections);
const base = '/api/v1';

const table: Statuses = [
  ['get', 'endpoints', '200 304 401 403 406 412 429'],
  ['query', 'endpoints', '200 304 401 403 406 412 413 415 422 429'],
  ['post', 'endpoints', '201 401 403 406 409 412 413 415 422 429'],
  ['get', 'endpoints/{id}', '200 304 401 403 404 406 412 429'],
  ['put', 'endpoints/{id}', '200 204 401 403 404 406 409 412 413 415 422 429'],
  ['patch', 'endpoints/{id}', '200 204 401 403 404 406 409 412 413 415 422 429'],
  ['delete', 'endpoints/{id}', '200 202 204 401 403 404 406 409 412 422 429'],
  ['post', 'endpoints/bulk-delete', '200 202 204 401 403 406 409 412 413 415 422 429'],
  ['post', 'endpoints/{id}/rotate-secret', '200 401 403 404 406 412 413 415 422 429'],
  ['post', 'endpoints/{id}/test', '202 401 403 404 406 409 412 413 415 422 429'],
  ['post', 'endpoints/{id}/recover', '202 401 403 404 406 409 412 413 415 422 429'],
  ['get', 'deliveries', '200 304 401 403 406 412 429'],
  ['query', 'deliveries', '200 304 401 403 406 412 413 415 422 429'],
  ['get', 'deliveries/{id}', '200 304 401 403 404 406 412 429'],
  ['get', 'deliveries/{id}/attempts', '200 304 401 403 404 406 412 429'],
  ['post', 'deliveries/{id}/resend', '202 401 403 404 406 409 412 413 415 422 429'],
  ['get', 'recoveries', '200 304 401 403 406 412 429'],
  ['delete', 'recoveries/{id}', '200 202 204 401 403 404 406 409 412 422 429'],
  ['post', 'events', '200 202 204 401 403 406 409 412 413 415 422 429'],
  ['post', 'events/expunge', '200 401 403 406 412 413 415 422 429'],
  ['get', 'event-types', '200 304 401 403 406 412 429'],
  ['get', 'event-types/{type}', '200 304 401 403 404 406 412 429'],
];

testStatuses(document, table);

test('describes no operation that a collection of the sender does not have', () => {
  const methods = (path: string) => methodsOf(document, path);
  assert.equal(methods('deliveries'), 'get query');
  assert.equal(methods('deliveries/{id}'), 'get');
  assert.equal(methods('deliveries/bulk-delete'), '');
  assert.equal(methods('recoveries'), 'get query');
  assert.equal(methods('recoveries/{id}'), 'get delete');
  assert.equal(methods('events'), 'get post');
});

test('tells which codes stand behind the conflicts of an event, a resend, a test and a recovery', () => {
  const codes = (path: string) => codesOf(document, 'post', `${base}/${path}`, 409);
  assert.deepEqual(codes('events'), ['event_id_used', 'idempotency_key_in_use']);
  assert.deepEqual(codes('deliveries/{id}/resend'), [
    'endpoint_unavailable',
    'event_unavailable',
    'resend_window_over',
  ]);
  assert.deepEqual(codes('endpoints'), [
    'endpoints_exhausted',
    'idempotency_key_in_use',
    'idempotency_result_sealed',
  ]);
  assert.deepEqual(codes('endpoints/{id}/test'), ['endpoint_unavailable']);
  assert.deepEqual(codes('endpoints/{id}/recover'), ['endpoint_unavailable', 'recovery_running']);
});

test('opens nothing of the sender to callers without a credential', () => {
  const open = operationsOf(document)
    .filter(({ path }) => /\/(?:endpoints|deliveries|recoveries|event-types)/.test(path))
    .filter(({ item }) => isOpen(document, item));
  assert.deepEqual(open, []);
});

test('says for each type of event what receivers are sent, with an example that fits it', () => {
  const sent = document.webhooks as Record<
    string,
    { post: { requestBody: { content: Record<string, Item> } } }
  >;
  assert.deepEqual(Object.keys(sent), [
    ...['categories', 'products', 'articles', 'notes'].flatMap((name) =>
      ['created', 'updated', 'deleted'].map((change) => `${name}.${change}`),
    ),
    ...['stock.ran-out', 'endpoint.failing', 'endpoint.disabled', 'endpoint.test'],
  ]);
  let example: Item = {};
  for (const [type, { post }] of Object.entries(sent)) {
    const content = post.requestBody.content['application/json'];
    assert(content !== undefined, type);
    // Updates and deletions have the object of the creation before them.
    example = { ...(content.example ?? example), type };
    assert.deepEqual(faults(document, content.schema, example), [], type);
    const wrong = { ...example, type: 'something.else' };
    assert.notDeepEqual(faults(document, content.schema, wrong), [], type);
  }
});

test('gives examples of attempts and of what actions take and answer that fit their schemas', () => {
  let examined = 0;
  for (const { path, method, item } of operationsOf(document)) {
    if (!/\/(?:endpoints|deliveries|recoveries|event-types|events)\b/.test(path)) continue;
    const { requestBody, responses } = item as { requestBody?: Item; responses: Record<string, unknown> };
    const bodies = [requestBody, ...Object.values(responses).map((response) => resolved(document, response))];
    for (const { content = {} } of bodies.filter((body): body is Item => body !== undefined)) {
      for (const part of Object.values(content as Record<string, Item>)) {
        if (!('example' in part)) continue;
        assert.deepEqual(faults(document, part.schema, part.example), [], `${method} ${path}`);
        examined += 1;
      }
    }
  }
  assert(examined >= 10, String(examined));
});

test('says nothing of webhooks where the program sends none', () => {
  const without = documentOf(shopCollections, '3.2', { eventTypes: undefined });
  assert(!('webhooks' in without));
  const paths = operationsOf(without).map(({ path, method }) => `${method} ${path.slice(base.length + 1)}`);
  assert(!paths.some((path) => /(?:endpoints|deliveries|recoveries|event-types)/.test(path)));
  assert(!paths.includes('post events'));
});
