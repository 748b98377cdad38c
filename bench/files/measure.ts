/**
 * Files: an upload, a download and 64 ranges at once of one long file, against `node:http` with `pipeline` and, where they are installed or
 * can be fetched, nginx, `@tus/server` and PocketBase (peers.ts); and the memory that 64 uploads take of a program that has just started.
 * Octets over loopback, downloads from the page cache.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { spreadOf } from '../cell.ts';
import { adminKey, environmentAt } from '../engine.ts';
import { machine, type Run, say } from '../measured-run.ts';
import { memoryOf, startServer } from '../server-process.ts';
import { spreadText, verdict } from '../table.ts';
import { filesMemoryMebibytesMost, filesMemoryToPeersMost } from '../targets.ts';
import { findPeers, floorPath, type Side, type Starting, startFloor } from './peers.ts';
import { download, exchange } from './transfer.ts';

const root = join(import.meta.dirname, '../..');
const MiB = 1024 * 1024;
/** A cell that is shorter than this only shows that everything runs. */
const smokeMs = 500;
const fullSizes = { bytes: 1024 * MiB, uploadBytes: 8 * MiB, idleMs: 5000 };
const smokeSizes = { bytes: 8 * MiB, uploadBytes: MiB / 4, idleMs: 200 };
const ranges = 64;
const uploads = 64;
/** Of each of the uploads whose memory is measured. */
const bytesPerSecond = MiB;
const memoryPollMs = 20;
const memoryRoundsMost = 3;
const authorization = `Bearer ${adminKey}`;

export async function measureFiles(run: Run): Promise<unknown> {
  say(run, ...machine(run), '');
  const { bytes, ...memorySizes } = run.options.measuredMs < smokeMs ? smokeSizes : fullSizes;
  const peers = await findPeers(run);
  say(run, ...peers.map(({ words }) => `- ${words}`), '');
  const startings = [startOurs(run), startFloor(run), ...peers.flatMap(({ start }) => start ?? [])].map(
    (start, index) => [start, join(run.folder, `files-${index}`)] as const,
  );
  const sides: Side[] = [];
  const stop = (): Promise<unknown> => Promise.all(sides.map((side) => side.stop()));
  try {
    for (const [start, folder] of startings) sides.push(await start(folder));
    const transfers = await measureTransfers(run, sides, bytes);
    await stop();
    const uploading = startings.filter((_, index) => sides[index]?.upload !== undefined);
    return { report: run.report, transfers, memory: await measureMemory(run, uploading, memorySizes) };
  } finally {
    await stop();
  }
}

function startOurs(run: Run): Starting {
  return async (folder) => {
    mkdirSync(folder, { recursive: true });
    const server = await startServer(run.pinning, [join(root, 'dist', 'main.js'), 'serve'], {
      ...environmentAt({ store: 'sqlite', folder }),
      COMITY_CONFIG: join(root, 'bench', 'files', 'comity.config.ts'),
    });
    const { port } = server;
    const json = { authorization, 'content-type': 'application/json' };
    const making = { port, method: 'POST', path: '/api/v1/media', headers: json };
    return {
      ...server,
      name: 'Comity',
      takesRanges: true,
      async upload(upload) {
        const { body } = await exchange({ ...making, content: '{"title":"measured"}' });
        const path = `/api/v1/media/${(JSON.parse(body) as { readonly id: string }).id}/file`;
        await exchange({ port, method: 'PUT', path, headers: { authorization }, upload });
        return path;
      },
      removal: (path) => path.slice(0, -'/file'.length),
    };
  };
}

async function measureTransfers(run: Run, sides: readonly Side[], bytes: number): Promise<unknown> {
  const paths = new Map(sides.map((side) => [side, floorPath]));
  const pathOf = (side: Side): string => paths.get(side) ?? floorPath;
  const fields = [`Authorization: ${authorization}`];
  const part = bytes / ranges;
  const results: Record<string, unknown> = {};
  say(run, '| transfer | of | ms | Comity by its rate (spread) | target |', '|---|---|---|---|---|');
  await measure('upload', async (side) => {
    paths.set(side, (await side.upload?.({ bytes })) ?? floorPath);
  });
  await measure('download', (side) => download(side.port, pathOf(side), bytes, fields));
  await measure(`${ranges} ranges at once`, (side) =>
    Promise.all(
      Array.from({ length: ranges }, (_, at) => {
        const range = `Range: bytes=${at * part}-${(at + 1) * part - 1}`;
        return download(side.port, pathOf(side), part, [...fields, range]);
      }),
    ),
  );
  return results;

  async function measure(kind: string, act: (side: Side) => Promise<unknown>): Promise<void> {
    const able = sides.filter((side) =>
      kind === 'upload' ? side.upload !== undefined : kind === 'download' || side.takesRanges,
    );
    const times = new Map(able.map((side) => [side, [] as number[]]));
    for (let round = -run.options.settlingRounds; round < run.options.rounds; round += 1)
      for (const side of round % 2 === 0 ? able : able.toReversed()) {
        const begun = performance.now();
        await act(side);
        if (round >= 0) times.get(side)?.push(performance.now() - begun);
        if (kind === 'upload' && round < run.options.rounds - 1) await remove(side, pathOf(side));
      }
    results[kind] = Object.fromEntries([...times].map(([{ name }, taken]) => [name, taken]));
    const [own = []] = times.values();
    for (const [{ name, least }, taken] of times) {
      const ratio = spreadOf(taken.map((ms, round) => ms / (own[round] ?? Number.NaN)));
      const most = least?.[kind === 'upload' ? 'upload' : 'download'];
      const target = most === undefined ? '' : `>= ${most} ${verdict(ratio.median >= most)}`;
      const beside = taken === own ? '' : spreadText(ratio);
      say(
        run,
        `| ${kind}, ${bytes / MiB} MiB | ${name} | ${spreadOf(taken).median.toFixed(0)} | ${beside} | ${target} |`,
      );
    }
  }
}

async function remove({ port, removal }: Side, path: string): Promise<void> {
  // What @tus/server wants of every request.
  const headers = { authorization, 'tus-resumable': '1.0.0' };
  await exchange({ port, method: 'DELETE', path: removal?.(path) ?? path, headers });
}

/**
 * The most that resident memory, without mapped files, rises above that of the idle program while many upload at a steady rate. Each time of
 * a new process, so that nothing that an earlier transfer left is counted as idle.
 */
async function measureMemory(
  run: Run,
  startings: readonly (readonly [Starting, string])[],
  { uploadBytes, idleMs }: Omit<typeof fullSizes, 'bytes'>,
): Promise<unknown> {
  const rises = new Map<string, number[]>();
  const idle = new Map<string, number>();
  for (let round = 0; round < Math.min(run.options.rounds, memoryRoundsMost); round += 1)
    for (const [start, folder] of startings) {
      const side = await start(folder);
      const now = (): number => (memoryOf(side.pid, 'RssAnon') ?? Number.NaN) / MiB;
      await wait(idleMs);
      const before = now();
      let most = before;
      const timer = setInterval(() => {
        most = Math.max(most, now());
      }, memoryPollMs);
      try {
        const upload = { bytes: uploadBytes, bytesPerSecond };
        await Promise.all(Array.from({ length: uploads }, () => side.upload?.(upload)));
      } finally {
        clearInterval(timer);
        await side.stop();
      }
      rises.set(side.name, [...(rises.get(side.name) ?? []), most - before]);
      idle.set(side.name, before);
    }
  const text = `${uploads} uploads of ${uploadBytes / MiB} MiB, each with ${bytesPerSecond / MiB} MiB a second`;
  say(
    run,
    '',
    `| memory of ${text} | idle MiB | above idle, MiB (spread) | Comity of it | target |`,
    '|---|---|---|---|---|',
  );
  const own = spreadOf(rises.get('Comity') ?? []).median;
  for (const [name, taken] of rises) {
    const { median } = spreadOf(taken);
    const part = own / median;
    const [most, value] =
      name === 'Comity' ? [filesMemoryMebibytesMost, own] : [filesMemoryToPeersMost, part];
    say(
      run,
      `| ${name} | ${idle.get(name)?.toFixed(0)} | ${spreadText(spreadOf(taken))} | ${name === 'Comity' ? '' : part.toFixed(2)} | <= ${most} ${verdict(value <= most)} |`,
    );
  }
  return Object.fromEntries(rises);
}
