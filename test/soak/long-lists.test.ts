/**
 * Lists over many long rows, in 512 MiB: ten of `limit=1000` at once over 480 notes of 1 MB, and one over 620. test/full/attack/memory.test.ts has the
 * short form. Takes some minutes and 2 GB of disk, most of it to write the rows.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startAttacked } from '../full/attack/attacked-program.ts';

const MiB = 1024 * 1024;
const config = fileURLToPath(new URL('../full/attack/fixtures/notes.config.ts', import.meta.url));
const list = '/api/v1/notes';
const noteBytes = 1_000_000;
const lists = 10;
/** Fewer by COMITY_SOAK_NOTES. */
const notes = Number(process.env.COMITY_SOAK_NOTES ?? 480);
const moreNotes = Math.ceil((notes * 620) / 480);
const triesMax = 30;

test('lists of everything stay within the memory and leave health alone', {
  timeout: 1_800_000,
}, async (t) => {
  const attacked = await startAttacked(t, { config });
  const { program } = attacked;
  const text = 'x'.repeat(noteBytes);
  let made = 0;
  const makeUpTo = async (count: number): Promise<void> => {
    for (; made < count; made += 1) {
      const answer = await program.send('POST', list, { json: { count: made, text } });
      assert.equal(answer.status, 201, answer.body.slice(0, 200));
    }
  };
  let refusals = 0;
  const page = async (cursor: string | null) => {
    const from = cursor === null ? '' : `&cursor=${cursor}`;
    for (let tries = 0; ; tries += 1) {
      const answer = await program.send('GET', `${list}?limit=1000${from}`, { anonymous: true });
      // Where memory or readers are taken, who reads on comes back when it is told to.
      const retrySeconds = Number(answer.headers['retry-after'] ?? 0);
      if (answer.status === 503 && retrySeconds > 0 && tries < triesMax) {
        refusals += 1;
        if (refusals < 5)
          console.log(
            answer.body,
            program
              .stderr()
              .split('\n')
              .filter((l) => !l.includes('secret-key'))
              .slice(-4),
          );
        await new Promise((resolve) => setTimeout(resolve, retrySeconds * 1000));
        continue;
      }
      assert.equal(answer.status, 200, answer.body.slice(0, 200));
      assert.ok(answer.body.length < 8 * MiB, `${answer.body.length} octets`);
      return answer.json() as { readonly items: readonly unknown[]; readonly nextCursor: string | null };
    }
  };
  const walk = async (): Promise<number> => {
    let items = 0;
    for (let cursor: string | null = null; ; ) {
      const { items: found, nextCursor } = await page(cursor);
      items += found.length;
      if (nextCursor === null) return items;
      cursor = nextCursor;
    }
  };

  await makeUpTo(notes);
  await attacked.health();
  await t.test(`ten at once over ${notes} notes of 1 MB`, async (step) => {
    const counts = await Promise.all(Array.from({ length: lists }, walk));
    step.diagnostic(`${refusals} pages were refused and asked for again`);
    assert.deepEqual(
      counts,
      Array.from({ length: lists }, () => notes),
    );
    await attacked.assertUnharmed();
  });
  await makeUpTo(moreNotes);
  await attacked.health();
  await t.test(`one over ${moreNotes}, longer together than any text may be`, async () => {
    assert.equal(await walk(), moreNotes);
    await attacked.assertUnharmed();
  });
});
