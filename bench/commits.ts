/**
 * The bound that all commits of one store on PostgreSQL share: each takes the lock of the counter in turn (decision 0016). Batches of one
 * process, of two processes on one schema, and of two processes on a schema each, which is what sharding by tenant does; the last two also with
 * a flush of the log that takes 10 ms longer, as on a disk that is replicated. Two processors are the bound of the one, the lock that of the other.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { spreadOf } from './cell.ts';
import type { CommitOrder, Committed } from './commit-writer.ts';
import { type Run, say } from './measured-run.ts';
import { seedPostgres } from './seed-postgres.ts';
import { spreadText, verdict } from './table.ts';
import { shardsLeast } from './targets.ts';

const program = fileURLToPath(new URL('commit-writer.ts', import.meta.url));
const sizes = [1, 64, 256, 512] as const;
const sizeOfTwo = 256;
const slowFlushMs = 10;
/** PostgreSQL waits so long before each flush, whatever else is under way. */
const slowFlush = `options=${encodeURIComponent(`-c commit_delay=${slowFlushMs * 1000} -c commit_siblings=0`)}`;

export async function measureCommits(run: Run): Promise<void> {
  const schemas = [await seededSchema(run), await seededSchema(run)] as const;
  await measureSizes(run, schemas[0]);
  await measureShards(run, schemas, '');
  await measureShards(run, schemas, slowFlush);
}

type Schema = { readonly url: string; readonly schema: string };

async function seededSchema(run: Run): Promise<Schema> {
  const place = run.engine.newPlace();
  if (place.store !== 'postgres') throw new Error('commits are measured on PostgreSQL');
  await seedPostgres(place.url, place.schema, 1_000);
  return place;
}

async function measureSizes(run: Run, schema: Schema): Promise<void> {
  const writer = await startWriter(schema, '');
  try {
    for (const size of sizes) {
      const took: number[] = [];
      for (let round = -1; round < run.options.rounds; round += 1) {
        const { batches, tookMs } = await writer.commit(size, run.options.measuredMs);
        if (round >= 0) took.push(tookMs / batches);
      }
      const batchMs = spreadOf(took);
      say(
        run,
        `a batch of ${size} creates with their events: ${spreadText(batchMs)} ms, ${Math.round((size * 1000) / batchMs.median)} creates a second`,
      );
    }
  } finally {
    writer.stop();
  }
}

async function measureShards(
  run: Run,
  schemas: readonly [Schema, Schema],
  parameters: string,
): Promise<void> {
  const writers = await Promise.all(
    [schemas[0], schemas[0], schemas[1]].map((schema) => startWriter(schema, parameters)),
  );
  const [one, beside, apart] = writers as [Writer, Writer, Writer];
  const rate = async (of: readonly Writer[]): Promise<number> => {
    const done = await Promise.all(of.map((writer) => writer.commit(sizeOfTwo, run.options.measuredMs)));
    return done.reduce((sum, { batches, tookMs }) => sum + (batches * sizeOfTwo * 1000) / tookMs, 0);
  };
  try {
    const together: number[] = [];
    const ratios: number[] = [];
    for (let round = -1; round < run.options.rounds; round += 1) {
      const shared = await rate([one, beside]);
      const sharded = await rate([one, apart]);
      if (round < 0) continue;
      together.push(shared);
      ratios.push(sharded / shared);
    }
    const ratio = spreadOf(ratios);
    const flush = parameters === '' ? '' : `, each flush ${slowFlushMs} ms longer`;
    const judged =
      parameters === '' ? '' : `, target >= ${shardsLeast} ${verdict(ratio.median >= shardsLeast)}`;
    say(
      run,
      `two processes with batches of ${sizeOfTwo}${flush}: ${Math.round(spreadOf(together).median)} creates a second in one schema, ` +
        `${spreadText(ratio)} times as many in two${judged}`,
    );
  } finally {
    for (const writer of writers) writer.stop();
  }
}

type Writer = { commit(size: number, ms: number): Promise<Committed>; stop(): void };

/** Each writer creates products of its own. */
let nextFrom = 6_000_000_000;

async function startWriter({ url, schema }: Schema, parameters: string): Promise<Writer> {
  const address = parameters === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${parameters}`;
  const child: ChildProcess = fork(program, [address, schema], { stdio: 'inherit' });
  await answerOf(child);
  return {
    async commit(size, ms) {
      const from = nextFrom;
      nextFrom += 10_000_000;
      child.send({ size, ms, from } satisfies CommitOrder);
      return (await answerOf(child)) as Committed;
    },
    stop: () => child.disconnect(),
  };
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const ended = new AbortController();
  const end = once(child, 'exit', { signal: ended.signal }).then(() => {
    throw new Error('a process that commits has ended');
  });
  try {
    const [answer] = await Promise.race([once(child, 'message', { signal: ended.signal }), end]);
    return answer;
  } finally {
    ended.abort();
    end.catch(() => undefined);
  }
}
