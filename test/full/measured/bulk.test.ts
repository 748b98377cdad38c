/** Bulk requests that are as large as they may be: none may hold the event loop, or end the program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Attacked, assertLoopFree, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../attack/fixtures/notes.config.ts', import.meta.url));
const json = { 'Content-Type': 'application/json' };
const itemsMax = 1000;

const bulk = ({ program }: Attacked, body: string) =>
  program.send('POST', '/api/v1/guarded/bulk', { headers: json, body });
const items = (count: number, item: (index: number) => object, more: object = {}) =>
  JSON.stringify({ items: Array.from({ length: count }, (_, index) => item(index)), ...more });

const unknownMembersCount = 100;
const unknownMembers = Object.fromEntries(
  Array.from({ length: unknownMembersCount }, (_, at) => [`unknown${at}`, at]),
);

/** Bodies by what is costly about them. */
const bodies: readonly (readonly [what: string, body: string, status: number])[] = [
  ['1,000 items of 4 kB', items(itemsMax, () => ({ text: 'x'.repeat(4000) })), 200],
  ['one item of a megabyte', items(1, () => ({ text: 'x'.repeat(1_000_000) })), 200],
  ['4 items of a megabyte, one by one', items(4, () => ({ text: 'x'.repeat(1e6) }), { atomic: false }), 200],
  ['1,000 items that are no objects', items(itemsMax, () => []), 422],
  ['1,000 items that are no objects, one by one', items(itemsMax, () => [], { atomic: false }), 200],
  ['a million items', `{"items":[${'0,'.repeat(1_000_000)}0]}`, 422],
  ['3 MB of arrays', `{"items":[{"data":[${'[],'.repeat(1_000_000)}[]]}]}`, 413],
  ['1,000 items with 100 unknown members', items(itemsMax, () => unknownMembers), 422],
];
test('reads and writes the largest bulk requests without holding the event loop', {
  timeout: 180_000,
}, async (context) => {
  const attacked = await startAttacked(context, { config, memoryBytes: 1024 * 1024 * 1024 });
  assert.equal(
    (
      await bulk(
        attacked,
        items(1, () => ({ count: 1 })),
      )
    ).status,
    200,
  );
  for (const [what, body, status] of bodies) {
    const answers = await Promise.all([bulk(attacked, body), bulk(attacked, body)]);
    for (const answer of answers)
      assert.equal(answer.status, status, `${what}: ${answer.body.slice(0, 300)}`);
    await assertLoopFree(attacked, what);
  }
});

test('answers 64 clients with the largest bulk requests within its memory', {
  timeout: 180_000,
}, async (context) => {
  const attacked = await startAttacked(context, { config, memoryBytes: 1024 * 1024 * 1024 });
  const body = items(itemsMax, (index) => ({ text: 'x'.repeat(4000), count: index }));
  // A program without memory for a request answers 503 before it has read it, and closes the connection.
  const status = () =>
    bulk(attacked, body)
      .then((answer) => answer.status)
      .catch(() => 503);
  const statuses = await Promise.all(Array.from({ length: 64 }, status));
  assert.ok(
    statuses.every((status) => status === 200 || status === 503),
    statuses.join(),
  );
  assert.ok(statuses.includes(200));
  await assertLoopFree(attacked, '64 clients');
});
