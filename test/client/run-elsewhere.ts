/**
 * Runs the rounds of the client in other runtimes, by hand, since their packages take 194 MB: `npm install deno bun` in a folder, then
 * `node --conditions=comity-source test/client/run-elsewhere.ts FOLDER/node_modules/.bin/deno FOLDER/node_modules/.bin/bun`.
 * A runtime may send a request again by itself; the proxy loses the first answer to each that says so.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { adminKey } from '../harness/exchange.ts';
import { repositoryRoot, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { startFaultyProxy } from './faulty-proxy.ts';

const folder = temporaryFolder();
await build({
  ...{ absWorkingDir: repositoryRoot, entryPoints: ['src/client/index.ts'], outdir: folder },
  ...{ bundle: true, splitting: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022' },
});
const env = { COMITY_RATE_LIMIT_WRITES: '0', COMITY_REALTIME_ATTEMPT_MS: '0' };
const program = await startServer({ env });
const endings: (() => unknown)[] = [];
const proxy = await startFaultyProxy(() => program.port, { after: (end) => endings.push(end) });
const seen = new Map<string, number>();
proxy.fault = ({ url, headers }) => {
  if (url.endsWith('/cut')) setImmediate(() => proxy.cut());
  const isExchange = url.endsWith('/auth/refresh');
  if (headers['x-lost'] === undefined && !isExchange) return undefined;
  const key = String(headers['idempotency-key']);
  seen.set(key, (seen.get(key) ?? 0) + 1);
  return seen.get(key) === 1 ? 'lost' : undefined;
};

for (const runtime of [process.execPath, ...process.argv.slice(2)]) {
  console.log(`\n${basename(runtime)}`);
  seen.clear();
  const flags = basename(runtime) === 'deno' ? ['run', '--allow-all', '--no-check'] : [];
  const rounds = join(repositoryRoot, 'test/client/rounds.ts');
  const child = spawn(runtime, [...flags, rounds, join(folder, 'index.js'), proxy.baseUrl, adminKey], {
    stdio: 'inherit',
  });
  await once(child, 'exit');
  console.log(`requests with a lost answer were sent ${[...seen.values()].join(', ')} times`);
}
await program.stop();
for (const end of endings) await end();
