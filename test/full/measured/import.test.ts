/** An import of 100 MB: what it takes of memory, and how long it holds the event loop. Many at once are in growth-attacks.ts. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { memoryOf } from '../../../bench/server-process.ts';
import { adminKey } from '../../harness/exchange.ts';
import { assertLoopFree, inOneRunOf, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../attack/fixtures/notes.config.ts', import.meta.url));
const MiB = 1024 * 1024;
const idleMs = 2000;
const blockMsMax = 50;
const rows = 100_000;
const text = 'words of a text, "quoted", '.repeat(36);
/** Measured: 71 MiB, most of it garbage that the collector leaves while there is room. */
const memoryMebibytesMax = 128;

/** Rows of a kilobyte, which the client sends as fast as the program takes them. */
async function send(port: number, query: string): Promise<Record<string, unknown>> {
  const sent = request({
    ...{ port, method: 'POST', path: `/api/v1/guarded/import${query}`, agent: false },
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'text/csv' },
  });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  sent.write('text,count,tags,data\r\n');
  const cell = `"${text.replaceAll('"', '""')}"`;
  for (let row = 0; row < rows; row += 100) {
    const lines = Array.from({ length: 100 }, (_, at) => `${cell},${row + at},"[""a""]",\r\n`);
    if (!sent.write(lines.join(''))) await once(sent, 'drain');
  }
  sent.end();
  const [answer] = await answered;
  const chunks: string[] = [];
  for await (const chunk of answer.setEncoding('utf8')) chunks.push(String(chunk));
  return JSON.parse(chunks.join('')) as Record<string, unknown>;
}

test(
  '100 MB of CSV are written as they arrive, in little memory and without holding the event loop',
  {
    timeout: 300_000,
  },
  (t) =>
    inOneRunOf(t, async () => {
      const attacked = await startAttacked(t, { config });
      const { pid = 0, exitCode } = attacked.program.process;
      assert.equal(exitCode, null);
      const mebibytes = (): number => (memoryOf(pid, 'RssAnon') ?? 0) / MiB;
      await pause(idleMs);
      const idle = mebibytes();
      // Before it, code that runs for the first time at the start of the program held the loop for 54 to 80 ms.
      const from = attacked.program.stderr().length;
      let most = idle;
      const timer = setInterval(() => {
        most = Math.max(most, mebibytes());
      }, 20);
      for (const query of ['?dryRun=true', '']) {
        const began = performance.now();
        const { created, refused } = await send(attacked.program.port, query);
        assert.deepEqual([created, refused], [rows, 0]);
        t.diagnostic(`${Math.round(rows / ((performance.now() - began) / 1000))} rows a second ${query}`);
      }
      clearInterval(timer);
      await assertLoopFree(attacked, 'an import', { blockMsMax, from });
      const rise = most - idle;
      t.diagnostic(`${rise.toFixed(0)} MiB above ${idle.toFixed(0)} MiB`);
      assert.ok(rise <= memoryMebibytesMax, `${rise.toFixed(0)} MiB above ${idle.toFixed(0)} MiB`);
    }),
);
