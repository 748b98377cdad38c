/**
 * Requests over HTTP/2, cleartext with prior knowledge: Comity against `node:http2` answering the same fields and content, by its stream
 * API, which is the floor, and by the one that looks like `node:http`.
 */
import { mkdirSync } from 'node:fs';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Spread, spreadOf } from '../cell.ts';
import { comityEnvironment } from '../engine.ts';
import type { ConstantAnswer } from '../floor/connections/http2-answers.ts';
import { seedFloor } from '../floor/store.ts';
import type { Run } from '../measured-run.ts';
import { productId } from '../product.ts';
import { seed } from '../seed-sqlite.ts';
import { type ServerProcess, startServer } from '../server-process.ts';
import { roundsOf } from '../webhooks/rounds.ts';
import { type H2Result, runH2load } from './h2load.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const livePath = '/health/live';
const collectionPath = '/api/v1/products';
/** So many different rows are asked for in turn. */
const pathsMax = 1000;
export const streamsPerConnection = 8;

const sideNames = ['comity', 'stream', 'compat'] as const;
type SideName = (typeof sideNames)[number];
export type H2Row = {
  readonly title: string;
  readonly results: Readonly<Record<SideName, readonly H2Result[]>>;
  readonly toStream: Spread;
  readonly toCompat: Spread;
  /** Names of fields that only one of Comity and the floor sends: none, or the comparison is not one of equals. */
  readonly unequalFields: readonly string[];
};
type Sides = Readonly<Record<SideName, ServerProcess>>;
type Asked = { readonly title: string; readonly paths: readonly string[] };

export async function measureHttp2(run: Run): Promise<readonly H2Row[]> {
  const rows = Math.min(...run.options.rows.sqlite);
  const started: ServerProcess[] = [];
  try {
    const sides = await startSides(run, rows, started);
    const count = Math.min(rows, pathsMax);
    const ids = Array.from({ length: count }, (_, index) => productId(Math.floor((index * rows) / count)));
    const asked: readonly Asked[] = [
      { title: 'read by id', paths: ids.map((id) => `${collectionPath}/${id}`) },
      { title: livePath, paths: [livePath] },
    ];
    const found: H2Row[] = [];
    for (const question of asked) found.push(await measureRow(run, sides, question));
    return found;
  } finally {
    await Promise.all(started.map((server) => server.stop()));
  }
}

async function startSides(run: Run, rows: number, started: ServerProcess[]): Promise<Sides> {
  const data = join(run.folder, `http2-${rows}`);
  mkdirSync(data, { recursive: true });
  seed(data, rows);
  const comity = await startServer(run.pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...comityEnvironment,
    COMITY_CONFIG: join(root, 'bench', 'comity.config.ts'),
    COMITY_DATA: data,
  });
  started.push(comity);
  const file = join(data, 'floor.db');
  seedFloor(file, rows);
  const live = await answerOf(comity, livePath);
  const constant: ConstantAnswer = {
    ...{ path: livePath, content: live.content },
    fields: [...live.fields].flatMap(([name, value]) => (name === 'date' ? [] : [name, value])),
  };
  const floorOf = async (name: string): Promise<ServerProcess> => {
    const program = join(root, 'bench', 'floor', 'connections', `http2-${name}.ts`);
    const server = await startServer(run.pinning, [program, file, JSON.stringify(constant)]);
    started.push(server);
    return server;
  };
  return { comity, stream: await floorOf('stream'), compat: await floorOf('compat') };
}

async function measureRow(run: Run, sides: Sides, { title, paths }: Asked): Promise<H2Row> {
  const [first = livePath] = paths;
  const unequalFields = await compareAnswers(sides, first);
  const { connections, warmupMs, measuredMs } = run.options;
  const plan = {
    ...{ paths, warmupMs, measuredMs, streams: streamsPerConnection },
    connections: Math.max(1, Math.round(connections / streamsPerConnection)),
  };
  const results: Record<SideName, H2Result[]> = { comity: [], stream: [], compat: [] };
  for (const { round, isMeasured } of roundsOf(run)) {
    const order = round % 2 === 0 ? sideNames : [...sideNames].reverse();
    for (const name of order) {
      const result = await runH2load(run.pinning, run.folder, sides[name], plan);
      if (isMeasured) results[name].push(result);
    }
  }
  const ratioTo = (other: SideName): Spread =>
    spreadOf(
      results.comity.map(
        ({ requestsPerSecond }, at) => requestsPerSecond / (results[other][at]?.requestsPerSecond ?? 0),
      ),
    );
  return { title, results, toStream: ratioTo('stream'), toCompat: ratioTo('compat'), unequalFields };
}

/** @throws where the content is not the same */
async function compareAnswers({ comity, stream, compat }: Sides, path: string): Promise<readonly string[]> {
  const [own, ...floors] = await Promise.all(
    [comity, stream, compat].map((server) => answerOf(server, path)),
  );
  const unequal = new Set<string>();
  for (const floor of floors) {
    if (own?.content !== floor.content) throw new Error(`${path}: ${own?.content} and ${floor.content}`);
    for (const name of own.fields.keys()) if (!floor.fields.has(name)) unequal.add(name);
    for (const name of floor.fields.keys()) if (!own.fields.has(name)) unequal.add(name);
  }
  return [...unequal];
}

type Answer = { readonly fields: ReadonlyMap<string, string>; readonly content: string };

/** @throws where it is not 200, or the server speaks no HTTP/2 here */
function answerOf({ host, port }: ServerProcess, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const session = connect(`http://${host}:${port}`).once('error', reject);
    const stream = session.request({ ':path': path, accept: 'application/json' });
    const fields = new Map<string, string>();
    let content = '';
    stream.on('response', (headers) => {
      if (headers[':status'] !== 200) reject(new Error(`${path}: ${headers[':status']}`));
      for (const [name, value] of Object.entries(headers))
        if (!name.startsWith(':')) fields.set(name, String(value));
    });
    stream.setEncoding('utf8').on('data', (text: string) => {
      content += text;
    });
    stream.once('error', reject);
    stream.once('close', () => {
      session.close();
      resolve({ fields, content });
    });
  });
}
