/**
 * Kills of an import and of the server that takes it: the same command, run again, continues. In the end every line is a document, and none
 * is there twice.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { runCommand, spawnCommand } from '../../harness/command-line.ts';
import { adminKey } from '../../harness/exchange.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const rounds = roundsOf(1, 3);
const lines = 20_000;
const folder = temporaryFolder();
let server: ServerProcess | undefined;
after(async () => {
  await server?.kill();
});

const environment = ({ url }: ServerProcess) => ({ COMITY_URL: url, COMITY_ADMIN_KEY: adminKey });

async function countOf(running: ServerProcess, path: string): Promise<number> {
  const answer = await running.send('GET', `/api/v1/${path}`, { headers: { prefer: 'count=exact' } });
  return Number(answer.headers['x-total-count']);
}

for (let round = 1; round <= rounds; round += 1) {
  test(`round ${round}: an import that is killed, and whose server is killed, is complete after it runs again`, async () => {
    const running = await spawnServer({ folder });
    server = running;
    const file = join(temporaryFolder(), 'notes.ndjson');
    const texts = Array.from({ length: lines }, (_, at) =>
      JSON.stringify({ id: `r${round}-${at}`, text: `round${round}`, createdAt: '2020-01-02T03:04:05.006Z' }),
    );
    await writeFile(file, `${texts.join('\n')}\n`);
    const own = `notes?text=round${round}&limit=1`;
    const args = ['import', file];

    const first = spawnCommand(args, environment(running));
    await until(async () => (await countOf(running, own)) > 0, 'the first documents are there');
    await pause(Math.random() * 100);
    first.process.kill('SIGKILL');
    await first.ended;
    const stored = await countOf(running, own);
    assert.ok(stored > 0);

    const second = spawnCommand(args, environment(running));
    await until(
      async () => (await countOf(running, own)) > stored || second.process.exitCode !== null,
      'the import continues',
    );
    await running.kill();
    const { code, stderr } = await second.ended;
    // A quick one may have ended before the kill.
    if (code !== 0) assert.match(stderr, /stopped: .*; run it again to continue/);

    const restarted = await spawnServer({ folder });
    server = restarted;
    const left = lines - (await countOf(restarted, own));
    const third = await runCommand([...args, '--json'], environment(restarted));
    assert.equal(third.code, 0, third.stderr);
    const counts = JSON.parse(third.stdout) as { created: number; unchanged: number };
    assert.deepEqual([counts.created, counts.unchanged], [left, lines - left]);
    assert.equal(await countOf(restarted, own), lines);
    assert.equal(await countOf(restarted, 'events?type=notes.created&limit=1'), round * lines);
    assert.equal(await restarted.stop(), 0);
  });
}
