/**
 * Senders of webhooks as recipes make them. Each is a program that gets the URLs of the suite, and sends one event to each of them: it signs
 * by the library of Standard Webhooks or of Svix, and tries again as its recipe does.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRedis } from '../webhooks/redis.ts';
import { fetchPackages, pinning } from './program.ts';

const wordsMax = 500;

export type Sender = {
  readonly name: string;
  readonly version: string;
  /** Lets it send to the URLs, signed with the secret. @returns how to end it */
  readonly start: (folder: string, urls: readonly string[], secret: string) => Promise<() => Promise<void>>;
};

const sign = (library: string): readonly string[] => [
  `import { Webhook } from '${library}';`,
  "import { randomUUID } from 'node:crypto';",
  'const wh = new Webhook(process.env.SECRET);',
  "const urls = process.env.URLS.split(' ');",
  'const deliver = (url, id, payload, limits) => {',
  '  const timestamp = new Date();',
  '  const headers = {',
  "    'content-type': 'application/json',",
  "    'webhook-id': id,",
  "    'webhook-timestamp': String(Math.floor(timestamp.getTime() / 1000)),",
  "    'webhook-signature': wh.sign(id, timestamp, payload),",
  '  };',
  "  return fetch(url, { ...limits, method: 'POST', headers, body: payload });",
  '};',
  "const payload = JSON.stringify({ type: 'note.created', timestamp: new Date(), data: { id: 1 } });",
];

/** One request, whatever the answer is. */
const once: readonly string[] = [
  ...sign('standardwebhooks'),
  'for (const url of urls) deliver(url, randomUUID(), payload).catch(() => {});',
];

/** The schedule, the 15 s and the meaning of 3xx of https://docs.svix.com/retries. */
const schedule: readonly string[] = [
  ...sign('svix'),
  "import { setTimeout as wait } from 'node:timers/promises';",
  'const delays = [0, 5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600];',
  'for (const url of urls) {',
  '  const id = randomUUID();',
  '  (async () => {',
  '    for (const seconds of delays) {',
  '      await wait(seconds * 1000);',
  "      const limits = { redirect: 'manual', signal: AbortSignal.timeout(15000) };",
  '      const response = await deliver(url, id, payload, limits).catch(() => undefined);',
  '      if (response?.ok) return;',
  '    }',
  '  })();',
  '}',
];

/** https://docs.bullmq.io: retrying failing jobs (exponential), and a request in a processor. */
const queue: readonly string[] = [
  ...sign('standardwebhooks'),
  "import { Queue, Worker } from 'bullmq';",
  "const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT) };",
  "const queue = new Queue('webhooks', { connection });",
  'new Worker(',
  "  'webhooks',",
  '  async (job) => {',
  '    const { url, id, payload } = job.data;',
  '    const response = await deliver(url, id, payload, { signal: AbortSignal.timeout(15000) });',
  '    if (!response.ok) throw new Error(response.statusText);',
  '  },',
  '  { connection, concurrency: 16 },',
  ');',
  'for (const url of urls)',
  "  await queue.add('webhook', { url, id: randomUUID(), payload }, {",
  '    attempts: 5,',
  "    backoff: { type: 'exponential', delay: 1000 },",
  '  });',
];

export const senders: readonly Sender[] = [
  sender('standardwebhooks and one fetch', ['standardwebhooks@1.1.1'], once),
  sender('svix and its schedule', ['svix@2.5.0'], schedule),
  {
    name: 'standardwebhooks and BullMQ',
    version: '1.1.1, 6.7.0',
    start: async (folder, urls, secret) => {
      const redis = await startRedis(pinning, folder);
      if (redis === undefined) throw new Error('redis-server is not installed');
      const stop = await run(folder, ['standardwebhooks@1.1.1', 'bullmq@6.7.0', 'ioredis@6.0.0'], queue, {
        ...environment(urls, secret),
        REDIS_PORT: String(redis.port),
      });
      return async () => {
        await stop();
        await redis.stop();
      };
    },
  },
];

function sender(name: string, packages: readonly string[], lines: readonly string[]): Sender {
  return {
    name,
    version: packages.map((each) => each.slice(each.lastIndexOf('@') + 1)).join(', '),
    start: (folder, urls, secret) => run(folder, packages, lines, environment(urls, secret)),
  };
}

function environment(urls: readonly string[], secret: string): Readonly<Record<string, string>> {
  return { URLS: urls.join(' '), SECRET: secret };
}

async function run(
  folder: string,
  packages: readonly string[],
  lines: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<() => Promise<void>> {
  await fetchPackages(folder, packages);
  const file = join(folder, 'sender.mjs');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const stdio = ['ignore', 'ignore', 'pipe'] as const;
  const child = spawn(process.execPath, [file], { env: { ...process.env, ...env }, stdio: [...stdio] });
  let words = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(0, wordsMax);
  });
  return async () => {
    await end(child);
    if (child.exitCode !== null && child.exitCode !== 0) throw new Error(`it ended by itself: ${words}`);
  };
}

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
