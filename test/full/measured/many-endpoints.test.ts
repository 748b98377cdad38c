/** A write that 2,000 endpoints want: neither it nor the deliveries that follow from it may hold the event loop, by the program's own log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startDeliveryReceiver } from '../../harness/delivery-receiver.ts';
import { localEgress } from '../../wire/webhooks/program-with-receiver.ts';
import { assertLoopFree, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../attack/fixtures/notes.config.ts', import.meta.url));
const endpoints = 2000;
const atOnce = 32;

test('delivers to 2,000 endpoints without holding the event loop', { timeout: 240_000 }, async (context) => {
  const { url, received } = await startDeliveryReceiver(context);
  const attacked = await startAttacked(context, {
    config,
    env: { ...localEgress, COMITY_LOOP_HELD_MS: '100' },
  });
  const { program } = attacked;
  let left = endpoints;
  const making = Array.from({ length: atOnce }, async () => {
    while (left > 0) {
      left -= 1;
      const json = { url: `${url}/${left}`, events: ['notes.*'] };
      assert.equal((await program.send('POST', '/api/v1/endpoints', { json })).status, 201);
    }
  });
  await Promise.all(making);
  await assertLoopFree(attacked, 'making the endpoints');
  for (let write = 1; write <= 3; write += 1) {
    const answer = await program.send('POST', '/api/v1/notes', { json: { count: write } });
    assert.equal(answer.status, 201);
    while (received.length < write * endpoints) await new Promise((resolve) => setTimeout(resolve, 50));
    await assertLoopFree(attacked, `write ${write}`);
  }
});
