/** A function that reads a whole collection gives the event loop back between its calls. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertLoopFree, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../../wire/logic/fixtures/long-functions.config.ts', import.meta.url));
const documents = 40_000;
const perBulk = 1000;
/** Answered before and after an export that holds the event loop. */
const fewAnswers = 5;

test('an export of 40,000 documents holds the event loop for no longer than any request', {
  timeout: 180_000,
}, async (context) => {
  const attacked = await startAttacked(context, { config });
  const { program } = attacked;
  const items = Array.from({ length: perBulk }, (_, index) => ({ name: `item ${index}` }));
  for (let made = 0; made < documents; made += perBulk)
    assert.equal((await program.send('POST', '/api/v1/items/bulk', { json: { items } })).status, 200);
  let isOver = false;
  const exporting = program.send('GET', '/api/v1/export').finally(() => {
    isOver = true;
  });
  let answers = 0;
  for (; !isOver; answers += 1) assert.equal((await program.send('GET', '/health/live')).status, 200);
  const exported = await exporting;
  assert.ok(answers > fewAnswers, `${answers} requests were answered meanwhile`);
  assert.equal(exported.body.trimEnd().split('\n').length, documents);
  await assertLoopFree(attacked, 'the export');
});
