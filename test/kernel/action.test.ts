/** An action by its declaration: where it is, what judges its content, what it answers, and what the OpenAPI document says of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { type ActionLimits, actionOperation, actionResource } from '../../src/kernel/action.ts';
import { contentLimitsDefault } from '../../src/kernel/content/content-shape.ts';
import type { Operation } from '../../src/kernel/resource.ts';
import { openApiDocument } from '../../src/openapi/document.ts';
import { openEmbedded } from '../harness/stores.ts';
import { askerOf, base, exchange, roomOf, surround } from '../harness/walked-resources.ts';

const limits: ActionLimits = { ...contentLimitsDefault, validationErrorsMax: 10 };
const tag = { name: 'games', description: 'Games.' };
const count = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] };
const handled: string[] = [];

const roll = actionResource(
  {
    ...{ path: `${base}/rolls`, tag, id: 'rollDice', summary: 'Roll dice' },
    input: {
      name: 'Roll',
      schema: Type.Object({ dice: Type.Integer({ minimum: 1, maximum: 6, description: 'How many.' }) }),
      example: { dice: 2 },
    },
    output: { schema: count, example: { count: 7 } },
    codes: ['forbidden'],
    check: ({ dice }) => (dice === 6 ? { code: 'forbidden', message: 'six are too many' } : undefined),
    handler: (_ask, { dice }) => {
      handled.push(`roll ${dice}`);
      return { content: { count: dice } };
    },
  },
  limits,
);

const odds = actionResource(
  {
    ...{ path: `${base}/odds`, tag, id: 'readOdds', summary: 'Ask for odds' },
    method: 'QUERY',
    input: { name: 'OddsQuery', schema: Type.Object({ of: Type.String() }), example: { of: 'six' } },
    output: { schema: count },
    codes: ['not_found'],
    handler: (_ask, { of }) =>
      of === 'six' ? { content: { count: 6 } } : { refused: { code: 'not_found' } },
  },
  limits,
);

const rules = actionResource(
  {
    ...{
      path: `${base}/rules`,
      tag,
      name: 'Rules',
      id: 'readRules',
      summary: 'Read the rules',
    },
    method: 'GET',
    output: { schema: count },
    codes: [],
    handler: () => ({ content: { count: 3 } }),
  },
  limits,
);

const resources = [roll, odds, rules];
const store = await openEmbedded();
const room = roomOf(surround(store), resources);
const ask = askerOf(room);
const document = JSON.parse(
  JSON.stringify(
    openApiDocument({
      ...{ title: 'Games', apiVersion: '1', resources, version: '3.2' },
      ...{ traceEnabled: false, corsEnabled: false, verifiedEmailRequired: false },
    }),
  ),
);

test('publishes the schema that judges content', async () => {
  assert.deepEqual(document.components.schemas.Roll, {
    type: 'object',
    required: ['dice'],
    properties: { dice: { type: 'integer', minimum: 1, maximum: 6, description: 'How many.' } },
    additionalProperties: false,
  });
  const statusOf = async (json: object) => (await ask('ada', 'POST', 'rolls', { json })).status;
  assert.deepEqual(
    [await statusOf({}), await statusOf({ dice: 7 }), await statusOf({ dice: 1, more: 1 })],
    [400, 422, 422],
  );
  assert.deepEqual(handled, []);
});

test('hands sound input to the handler, once `check` has nothing against it', async () => {
  const rolled = await ask('ada', 'POST', 'rolls', { json: { dice: 2 } });
  assert.deepEqual([rolled.status, rolled.json], [200, { count: 2 }]);
  assert.equal((await ask('ada', 'POST', 'rolls', { json: { dice: 6 } })).status, 403);
  assert.deepEqual(handled, ['roll 2']);
});

test('takes the members that any part of a composed schema names, and no others', async () => {
  const b = { type: 'object', properties: { b: { type: 'integer' } } };
  const composed = actionResource(
    {
      ...{ path: `${base}/composed`, tag, id: 'compose', summary: 'Compose', codes: [] },
      input: {
        name: 'Whole',
        schema: Type.Object({ a: Type.Integer() }, { allOf: [b] }),
        example: { a: 1 },
      },
      handler: () => ({ content: null }),
    },
    limits,
  );
  const asked = askerOf(roomOf(surround(store), [composed]));
  const statusOf = async (json: object) => (await asked('ada', 'POST', 'composed', { json })).status;
  assert.deepEqual([await statusOf({ a: 1, b: 2 }), await statusOf({ a: 1, c: 3 })], [204, 422]);
});

test('may be a QUERY with content or a GET without, and refuse', async () => {
  const found = await ask('ada', 'QUERY', 'odds', { json: { of: 'six' } });
  assert.deepEqual([found.status, found.json], [200, { count: 6 }]);
  assert.equal((await ask('ada', 'QUERY', 'odds', { json: { of: 'seven' } })).status, 404);
  assert.equal((await ask('ada', 'QUERY', 'odds', { json: {} })).status, 400);
  const read = await ask('ada', 'GET', 'rules');
  assert.deepEqual([read.status, read.json], [200, { count: 3 }]);
  assert.equal((await ask('ada', 'HEAD', 'rules')).status, 200);
});

test('has a name for its schema that no other schema has', () => {
  const twice = [roll, { ...odds, operations: new Map([['QUERY', rolledOtherwise()]]) }];
  const options = { title: 'Games', apiVersion: '1', resources: twice, version: '3.2' } as const;
  const setUp = { traceEnabled: false, corsEnabled: false, verifiedEmailRequired: false };
  assert.throws(() => openApiDocument({ ...options, ...setUp }), /two schemas are named Roll/);
});

function rolledOtherwise(): Operation {
  return actionOperation(
    {
      ...{ method: 'QUERY', id: 'readRolls', summary: 'Ask for rolls', codes: [] },
      input: { name: 'Roll', schema: Type.Object({ of: Type.String() }), example: { of: 'six' } },
      handler: () => ({ content: null }),
    },
    limits,
  );
}

test('is described where it is, with its codes, its examples and its tag', () => {
  const { post } = document.paths[`${base}/rolls`];
  assert.deepEqual([post.operationId, post.summary, post.tags], ['rollDice', 'Roll dice', ['games']]);
  assert.deepEqual(post.requestBody.content['application/json'], {
    schema: { $ref: '#/components/schemas/Roll' },
    example: { dice: 2 },
  });
  assert.deepEqual(post.responses['200'].content['application/json'], {
    schema: count,
    example: { count: 7 },
  });
  assert.deepEqual(Object.keys(post.responses), ['200', 'default']);
  assert(post['x-errors']['403'].includes('forbidden') && !('404' in post['x-errors']));
  assert.deepEqual(document.paths[`${base}/odds`].query['x-errors']['404'], ['not_found']);
  assert.deepEqual(Object.keys(document.paths[`${base}/rules`]), ['get']);
  assert.deepEqual(document.tags, [tag]);
});

test('an action whose client left before its turn is not carried out', async () => {
  handled.length = 0;
  const body = JSON.stringify({ dice: 4 });
  const fields = ['Authorization', 'Bearer ada', 'Content-Type', 'application/json'];
  const message = { method: 'POST', target: `${base}/rolls`, fields, body };
  await assert.rejects(exchange(room, { ...message, isGone: true }), /the client has left/);
  assert.deepEqual(handled, []);
  assert.equal((await exchange(room, message)).status, 200);
  assert.deepEqual(handled, ['roll 4']);
});
