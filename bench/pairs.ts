/**
 * The cells of the ratio table: each request against Comity and against its floor, at each number of rows.
 */
import type { Cell, Sample } from './cell.ts';
import { adminKey, floorKindOf, type Subject } from './engine.ts';
import type { LoadPlan } from './load/plan.ts';
import { measureLoad } from './measured-load.ts';
import type { Run } from './measured-run.ts';
import { isPairName, type PairName } from './options.ts';
import { categoryId as seededCategoryId } from './product.ts';

import type { Pair } from './table.ts';

const path = '/api/v1/products';

/** A number no earlier create used, so that every sku is new. */
let createFrom = 1_000_000_000;

export async function preparePairs(run: Run, noise: boolean): Promise<readonly Pair[]> {
  const pairs: Pair[] = [];
  const names = run.options.only.filter(isPairName);
  const categories = new Map<number, string>();
  for (const rows of run.options.rows[run.store]) {
    const startFloor = await run.engine.prepareFloor(rows);
    const started = new Map<string, Subject>();
    for (const name of names) {
      const kind = floorKindOf(name);
      const floor = started.get(kind) ?? (await startFloor(kind));
      const comity = noise
        ? (started.get(`${kind} again`) ?? (await startFloor(kind, '-again')))
        : run.comities.get(rows);
      if (comity === undefined) throw new Error(`no server with ${rows} rows`);
      if (!started.has(kind)) run.subjects.push(floor);
      if (noise && !started.has(`${kind} again`)) run.subjects.push(comity);
      started.set(kind, floor);
      started.set(`${kind} again`, comity);
      if (name === 'create' && !noise) categories.set(rows, await createCategory(comity));
      const category = categories.get(rows) ?? seededCategoryId;
      pairs.push({
        name,
        rows,
        comity: requestCell(run, name, rows, comity, 'comity', category),
        floor: requestCell(run, name, rows, floor, 'floor', category),
      });
    }
  }
  // Creates come last in each round: they add rows to what the others read.
  return [...pairs.filter(({ name }) => name !== 'create'), ...pairs.filter(({ name }) => name === 'create')];
}

export function requestCell(
  run: Run,
  name: PairName,
  rows: number,
  subject: Subject,
  side: Cell['side'],
  categoryId: string,
): Cell {
  const { server } = subject;
  const measure = async (): Promise<Sample> => {
    const plan = { ...planFor(run, subject, rows, name), createFrom, categoryId };
    createFrom += 10_000_000;
    const { sample, result } = await measureLoad(run, server, plan);
    if (name === 'create') await readBack(subject, result.locations);
    return sample;
  };
  return { name, kind: name, side, rows, samples: [], measure, memoryBytes: server.memoryBytes };
}

export function planFor(
  run: Run,
  { server }: Subject,
  rows: number,
  kind: LoadPlan['kind'] = 'read',
): LoadPlan {
  const { connections, warmupMs, measuredMs } = run.options;
  // Reads are public, as in the shop; only writes bring the key.
  const writes = kind === 'create' || kind === 'change';
  const fieldLines = `Accept: application/json\r\n${writes ? `X-API-Key: ${adminKey}\r\n` : ''}`;
  return {
    host: server.host,
    port: server.port,
    kind,
    connections,
    warmupMs,
    measuredMs,
    rows,
    // PostgreSQL runs on the processor of the generator, and so may the kernel while it writes to the disk.
    polls: run.store === 'sqlite' && !writes,
    path,
    fieldLines,
    createFrom,
    categoryId: seededCategoryId,
  };
}

/** What was acknowledged must be there. */
async function readBack({ server }: Subject, locations: readonly string[]): Promise<void> {
  if (locations.length === 0) throw new Error('no Location was sampled from the creates');
  for (const location of locations) {
    const response = await fetch(new URL(location, `http://${server.host}:${server.port}`));
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`created ${location} answers ${response.status}`);
  }
}

export async function createCategory({ server }: Subject): Promise<string> {
  const response = await fetch(`http://${server.host}:${server.port}/api/v1/categories`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-API-Key': adminKey },
    body: '{"name":"Kettles"}',
  });
  if (response.status !== 201)
    throw new Error(`creating a category: status ${response.status} ${await response.text()}`);
  return ((await response.json()) as { id: string }).id;
}
