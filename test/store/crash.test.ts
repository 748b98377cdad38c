/**
 * A process killed at any moment loses no unit that it acknowledged, and no half of one. 5 rounds; COMITY_SOAK=1 makes it 40.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { always } from '../../src/model/filter.ts';
import { byId, idsOn, rowAt, things, walk } from '../contract/fixture.ts';
import { roundsOf } from '../harness/rounds.ts';
import { type Folder, folderFor } from './folder.ts';

const rounds = roundsOf(2, 3);
const script = new URL('./crash-child.ts', import.meta.url).pathname;

test(`keeps every acknowledged unit over ${rounds} kills at random moments`, async (context) => {
  const folder = folderFor(context);
  const acknowledged = new Map<string, number>();
  for (let round = 0; round < rounds; round += 1) {
    const child = spawn(process.execPath, [script, folder.path], { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = linesOf(child.stdout);
    // Between the first acknowledgements and some thousand units later, checkpoints included.
    const killAfter = 1 + Math.floor(Math.random() * 4000);
    let seen = 0;
    for await (const line of lines) {
      if (note(line, acknowledged)) seen += 1;
      if (seen === killAfter) child.kill('SIGKILL');
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    assert.equal(
      child.signalCode,
      'SIGKILL',
      `ended by itself, exit code ${child.exitCode}, after ${seen} of ${killAfter}`,
    );
    await check(folder, acknowledged, context);
  }
});

test('loses no acknowledged unit when the file system refuses to grow a file in the middle of a commit', async (context) => {
  if (process.platform === 'win32') return context.skip('needs ulimit');
  const folder = folderFor(context);
  const acknowledged = new Map<string, number>();
  const command = `ulimit -f 12000; trap '' XFSZ; exec "$0" "$@"`;
  const child = spawn('/bin/sh', ['-c', command, process.execPath, script, folder.path, '40'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const failures: string[] = [];
  for await (const line of linesOf(child.stdout)) {
    if (!note(line, acknowledged)) failures.push(line);
  }
  assert.ok(acknowledged.size > 100);
  assert.deepEqual([...new Set(failures)], ['open', 'failed StoreUnavailable', 'over']);
  await check(folder, acknowledged, context);
});

function note(line: string, acknowledged: Map<string, number>): boolean {
  const [rev, id] = line.split(' ');
  if (id === undefined || !Number.isSafeInteger(Number(rev))) return false;
  acknowledged.set(id, Number(rev));
  return true;
}

async function check(
  folder: Folder,
  acknowledged: ReadonlyMap<string, number>,
  context: TestContext,
): Promise<void> {
  const store = await folder.open();
  for (const [id, rev] of acknowledged) {
    const row = await rowAt(store, things, id);
    const event = await store.read('events', `evt_${id}`);
    assert.ok(row?.rev === rev && event?.rev === rev, `${id} of revision ${rev} is lost`);
  }
  const plan = store.plan({ table: 'things', filter: always, sort: byId, limit: 1000 });
  const rows = (await walk(plan, 'after')).flatMap(idsOn);
  assert.equal(await store.count('events', always), rows.length, 'each row has its event');
  const highest = (await store.head()).rev;
  for (const rev of acknowledged.values()) assert.ok(rev <= highest);
  context.diagnostic(`${acknowledged.size} acknowledged, ${rows.length} there`);
  await store.close();
}

async function* linesOf(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n');
    // A kill may cut the last line: only whole lines are acknowledgements.
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
