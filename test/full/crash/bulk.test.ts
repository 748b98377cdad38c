/**
 * Kills during bulk requests: after the restart every acknowledged item is there exactly once, and an atomic request is
 * there as a whole or not at all.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { adminKey } from '../../harness/exchange.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const rounds = roundsOf(1, 3);
const itemsPerRequest = 50;
const clients = 6;
const folder = temporaryFolder();
let program: ServerProcess | undefined;
after(async () => {
  await program?.kill();
});

type Sent = { readonly name: string; readonly atomic: boolean; readonly acknowledged: readonly string[] };

for (let round = 1; round <= rounds; round += 1) {
  test(`round ${round}: acknowledged items are there once, and atomic requests whole or not at all`, async () => {
    const running = await spawnServer({ folder });
    program = running;
    const sent: Sent[] = [];
    const writing = Array.from({ length: clients }, (_, client) =>
      write(running.port, `${round}-${client}`, sent),
    );
    while (sent.filter(({ acknowledged }) => acknowledged.length > 0).length < 2 * clients) await pause(5);
    await pause(Math.random() * 50);
    await running.kill();
    await Promise.all(writing);
    program = await spawnServer({ folder });
    const ids = await idsByText(program.port, round);
    const acknowledged = sent.flatMap((each) => each.acknowledged);
    assert.equal(new Set(acknowledged).size, acknowledged.length);
    const stored = [...ids.values()].flat();
    assert.equal(new Set(stored).size, stored.length);
    for (const { name, atomic, acknowledged: own } of sent) {
      const found = ids.get(name) ?? [];
      for (const id of own) assert.ok(found.includes(id), `${id} of ${name}`);
      if (own.length > 0) assert.equal(found.length, itemsPerRequest, name);
      else if (atomic)
        assert.ok(found.length === 0 || found.length === itemsPerRequest, `${name} ${found.length}`);
    }
    await program.kill();
  });
}

async function write(port: number, client: string, sent: Sent[]): Promise<void> {
  for (let number = 0; ; number += 1) {
    const name = `${client}-${number}`;
    const atomic = number % 2 === 0;
    const items = Array.from({ length: itemsPerRequest }, () => ({ text: name }));
    const index = sent.push({ name, atomic, acknowledged: [] }) - 1;
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/notes/bulk`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-API-Key': adminKey },
        body: JSON.stringify({ items, atomic }),
      });
      const { items: results } = (await answer.json()) as { items: { status: number; id: string }[] };
      assert.ok(results.every(({ status }) => status === 201));
      sent[index] = { name, atomic, acknowledged: results.map(({ id }) => id) };
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      // The server is gone.
      return;
    }
  }
}

async function idsByText(port: number, round: number): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  let cursor: string | null = null;
  do {
    const from: string = cursor === null ? '' : `&cursor=${cursor}`;
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/notes?limit=1000${from}`, {
      headers: { 'X-API-Key': adminKey },
    });
    const page = (await answer.json()) as {
      items: { id: string; text: string }[];
      nextCursor: string | null;
    };
    for (const { id, text } of page.items) {
      if (text.startsWith(`${round}-`)) found.set(text, [...(found.get(text) ?? []), id]);
    }
    cursor = page.nextCursor;
  } while (cursor !== null);
  return found;
}
