/**
 * A migration of all documents beside requests: documents a second, and the p99 of reads by id meanwhile against that of the same reads once
 * it is done, on the same server.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { environmentAt } from '../engine.ts';
import { machine, type Run, say } from '../measured-run.ts';
import { productId } from '../product.ts';
import { seedPostgres } from '../seed-postgres.ts';
import { seed } from '../seed-sqlite.ts';
import { startServer } from '../server-process.ts';
import { verdict } from '../table.ts';
import { migrationReadsMost } from '../targets.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const readers = 8;

export async function measureMigrations(run: Run): Promise<unknown> {
  say(run, ...machine(run), '');
  const rows = Math.max(...run.options.rows[run.store]);
  const place = run.engine.newPlace();
  if (place.store === 'sqlite') seed(place.folder, rows);
  else await seedPostgres(place.url, place.schema, rows);
  const server = await startServer(run.pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...environmentAt(place),
    COMITY_CONFIG: join(root, 'bench', 'migrations', 'comity.config.ts'),
    ...{ COMITY_MIGRATE_AT_START: 'on', COMITY_SERVE_UNMIGRATED: 'on' },
  });
  const agent = new Agent({ connections: readers });
  const origin = `http://${server.host}:${server.port}`;
  const read = async (index: number): Promise<string> => {
    const { statusCode, body } = await agent.request({
      ...{ origin, path: `/api/v1/products/${productId(index)}`, method: 'GET' },
    });
    if (statusCode !== 200) throw new Error(`a read is answered ${statusCode}`);
    return body.text();
  };
  try {
    const startedAt = performance.now();
    let isDone = false;
    const reading = readUntil(read, rows, () => isDone);
    // Migrated in order of their ids.
    while (!(await read(rows - 1)).includes('"cents"')) await delay(5);
    const seconds = (performance.now() - startedAt) / 1000;
    isDone = true;
    const beside = p99Of(await reading);
    await delay(Math.min(10_000, 500 + 1000 * seconds));
    const endsAt = performance.now() + run.options.measuredMs;
    const alone = p99Of(await readUntil(read, rows, () => performance.now() > endsAt));
    const ratio = beside / alone;
    say(
      run,
      `${rows} documents migrated beside ${readers} readers: ${Math.round(rows / seconds)} a second; p99 of reads ` +
        `${beside.toFixed(2)} ms meanwhile and ${alone.toFixed(2)} ms alone, ${ratio.toFixed(2)} times, ` +
        `target <= ${migrationReadsMost} ${verdict(ratio <= migrationReadsMost)}`,
    );
    return { report: run.report, store: run.store, rows, seconds, beside, alone };
  } finally {
    await agent.close();
    await server.stop();
  }
}

/** @returns the time of each read, in milliseconds */
async function readUntil(
  read: (index: number) => Promise<string>,
  rows: number,
  isOver: () => boolean,
): Promise<number[]> {
  const times: number[] = [];
  const one = async (): Promise<void> => {
    while (!isOver()) {
      const startedAt = performance.now();
      await read(Math.floor(Math.random() * rows));
      times.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: readers }, one));
  return times;
}

function p99Of(times: readonly number[]): number {
  const sorted = times.toSorted((one, other) => one - other);
  return sorted[Math.floor(0.99 * sorted.length)] ?? Number.NaN;
}
