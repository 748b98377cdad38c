/** Scans that cost more than their time: patterns whose cost is the product of two lengths, over texts of a megabyte. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Answer } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { type Attacked, assertLoopFree, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../attack/fixtures/notes.config.ts', import.meta.url));
const longScanMs = 60_000;
const env = { COMITY_SCAN_TIMEOUT_MS: '1000' };

/** 900 characters that match at nearly every place of the text. */
const costly = (mark: number) => `%${'a'.repeat(895)}${mark}b%`;

async function fill(program: RunningServer, notes: number): Promise<void> {
  for (let index = 0; index < notes; index += 1) {
    const made = await program.send('POST', '/api/v1/notes', { json: { text: 'a'.repeat(1_000_000) } });
    assert.equal(made.status, 201);
  }
}

function scan(program: RunningServer, filter: object, anonymous: boolean): Promise<Answer> {
  return program.send('QUERY', '/api/v1/notes', { json: { filter }, anonymous });
}

function costlyScan(program: RunningServer, turn: number): Promise<Answer> {
  const likes = Array.from({ length: 12 }, (_, index) => ({ text: { like: costly(turn * 12 + index) } }));
  return scan(program, { or: likes }, false);
}

async function attackWithScans({ program }: Attacked, id: string): Promise<readonly Answer[]> {
  const scans = Array.from({ length: 6 }, (_, turn) => costlyScan(program, turn));
  const beside = Array.from({ length: 4 }, (_, turn) =>
    scan(program, { and: [{ id }, { or: [{ text: { like: costly(turn) } }] }] }, false),
  );
  return Promise.all([...scans, ...beside]);
}

test('ends each scan for sure, answers others meanwhile, and stops within its time', {
  timeout: 90_000,
}, async (context) => {
  const attacked = await startAttacked(context, { config, env });
  const { program } = attacked;
  await fill(program, 4);
  const [first] = (await program.send('GET', '/api/v1/notes?limit=1&fields=id')).json().items as {
    id: string;
  }[];
  const attack = attackWithScans(attacked, first?.id ?? '');
  let others = 0;
  for (let turn = 0; turn < 5; turn += 1) {
    // No index serves this either, but it is another party's.
    const answer = await scan(program, { text: { like: `x${turn}%` } }, true);
    assert.equal(answer.status, 200, 'a scan of another party waited for the attack');
    others += 1;
  }
  assert.equal(others, 5);
  for (const { status } of await attack) assert.ok(status === 200 || status === 503, String(status));
  await assertLoopFree(attacked, 'scans');
});

test('ends scans under way on SIGTERM, and exits 0', { timeout: 60_000 }, async (context) => {
  const attacked = await startAttacked(context, {
    config,
    env: { ...env, COMITY_DRAIN_MS: '1000', COMITY_SCAN_TIMEOUT_MS: String(longScanMs) },
  });
  const { program } = attacked;
  await fill(program, 4);
  const scans = Array.from({ length: 6 }, (_, turn) => costlyScan(program, turn).catch(() => undefined));
  await scan(program, { text: { like: 'x%' } }, true);
  const startedAt = performance.now();
  assert.equal(await program.stop(), 0);
  const tookMs = performance.now() - startedAt;
  assert.ok(tookMs < longScanMs / 2, `it took ${tookMs} ms to stop`);
  await Promise.all(scans);
});
