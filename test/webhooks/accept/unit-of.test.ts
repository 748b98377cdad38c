/** The content of a long message: every octet of it, written in several turns of the event loop. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { unitOf } from '../../../src/webhooks/receiving/accept-message.ts';
import { declared } from './walked-senders.ts';

const MiB = 1024 * 1024;
const facts = { key: 'msg_1', oversizedKey: undefined, type: null, challenge: undefined };

for (const [length, turnsLeast] of [
  [10, 0],
  [3 * MiB, 0],
  [3 * MiB + 1, 2],
  [25 * MiB, 9],
] as const) {
  test(`keeps ${length} octets as they came, in at least ${turnsLeast} further turns`, async () => {
    const body = randomBytes(length);
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      if (isOver) return;
      turns += 1;
      setImmediate(count);
    };
    setImmediate(count);
    const message = { body, header: () => undefined };
    const unit = await unitOf(declared('bank', 'standard'), { message, facts }, '1', { ms: 1, text: '' });
    isOver = true;
    assert.ok(turns >= turnsLeast, `${turns} turns`);
    const kept = JSON.parse(unit.changes[0]?.next?.doc ?? '{}') as { readonly body: string };
    assert.ok(Buffer.from(kept.body, 'base64').equals(body));
  });
}
