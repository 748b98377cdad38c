/**
 * Searches by an index of words, at each number of rows, against a list of as many documents on the same server, none of them asked twice;
 * how their cost grows with the rows; and how many documents a second an index is made of beside requests.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { spreadOf } from '../cell.ts';
import { environmentAt, type Place } from '../engine.ts';
import { machine, type Run, say } from '../measured-run.ts';
import { type ServerProcess, startServer } from '../server-process.ts';
import { spreadText, verdict } from '../table.ts';
import { searchGrowthMost } from '../targets.ts';
import { perTopic, seedReports, seedReportsPostgres, topicsOf, topicWord } from './documents.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const clients = 8;
const statusUnavailable = 503;
/** Most rows whose index the run makes. */
const madeRowsMost = 100_000;
/** Found documents that are ranked for a page, src/model/search/search-index.ts: more rows cost no more. */
const rankedFrom = 10_000;

type Kind = {
  readonly title: string;
  /** The query string; another one for each number. */
  readonly query: (at: number, rows: number) => string;
  /** Fewer rows are not compared with. */
  readonly from?: number;
};

const numbers = (at: number): string => `price[gte]=${(at % 9000) / 4 + at / 1e9}&sort=price&limit=20`;

/** A condition that all rows pass makes each query another one. */
const another = (at: number): string => `price[gte]=-${at}`;

const kinds: readonly Kind[] = [
  { title: 'a list by an index', query: numbers },
  {
    title: `q of a rare word, ${perTopic} found`,
    query: (at, rows) => `q=${topicWord(at % topicsOf(rows))}&${another(at)}`,
  },
  {
    title: 'q of two words, one rare',
    query: (at, rows) => `q=common+${topicWord(at % topicsOf(rows))}&${another(at)}`,
  },
  {
    title: 'q of a prefix',
    query: (at, rows) => `q=${topicWord(at % topicsOf(rows)).slice(0, -1)}*+even&sort=price&${another(at)}`,
  },
  { title: 'q of a word of half of all, by price', query: (at) => `q=even&${numbers(at)}` },
  {
    title: 'q of a rare word by rank',
    query: (at, rows) => `q=${topicWord(at % topicsOf(rows))}&sort=-rank&${another(at)}`,
  },
  {
    title: 'q of a word of all by rank',
    query: (at) => `q=common&sort=-rank&${another(at)}`,
    from: rankedFrom,
  },
];

type Subject = { readonly rows: number; readonly server: ServerProcess };

export async function measureSearch(run: Run): Promise<unknown> {
  say(run, ...machine(run), `${clients} clients, one request outstanding each.`, '');
  const made = await measureMaking(run);
  const subjects: Subject[] = [];
  const agent = new Agent({ connections: clients });
  try {
    for (const rows of run.options.rows[run.store]) {
      const place = run.engine.newPlace();
      if (place.store === 'sqlite') seedReports(place.folder, rows, true);
      else await seedReportsPostgres(place.url, place.schema, rows);
      subjects.push({ rows, server: await start(run, place) });
    }
    const rates = await measureRates(run, subjects, agent);
    for (const line of tableOf(subjects, rates)) say(run, line);
    return { report: run.report, store: run.store, made, rates: [...rates] };
  } finally {
    await agent.close();
    await Promise.all(subjects.map(({ server }) => server.stop()));
  }
}

function start(run: Run, place: Place): Promise<ServerProcess> {
  return startServer(run.pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...environmentAt(place),
    COMITY_CONFIG: join(root, 'bench', 'search', 'comity.config.ts'),
  });
}

/** Rates by title and rows, one for each round. */
type Rates = ReadonlyMap<string, readonly number[]>;

const cellName = ({ title }: Kind, rows: number): string => `${title} ${rows}`;

async function measureRates(run: Run, subjects: readonly Subject[], agent: Agent): Promise<Rates> {
  const rates = new Map<string, number[]>();
  const cells = kinds.flatMap((kind) => subjects.map((subject) => ({ kind, subject })));
  let asked = 0;
  for (let round = -run.options.settlingRounds; round < run.options.rounds; round += 1) {
    for (const { kind, subject } of round % 2 === 0 ? cells : [...cells].reverse()) {
      const endsAt = performance.now() + run.options.measuredMs;
      const begun = performance.now();
      let done = 0;
      const client = async (): Promise<void> => {
        while (performance.now() < endsAt) {
          asked += 1;
          await read(agent, subject, kind.query(asked * 7919, subject.rows));
          done += 1;
        }
      };
      await Promise.all(Array.from({ length: clients }, client));
      if (round < 0) continue;
      const name = cellName(kind, subject.rows);
      rates.set(name, [...(rates.get(name) ?? []), (done * 1000) / (performance.now() - begun)]);
    }
  }
  return rates;
}

async function read(agent: Agent, { server }: Subject, query: string): Promise<void> {
  const { statusCode, body } = await agent.request({
    origin: `http://${server.host}:${server.port}`,
    path: `/api/v1/reports?${encodeURI(query)}`,
    method: 'GET',
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${query} is answered with status ${statusCode}: ${text}`);
}

function tableOf(subjects: readonly Subject[], rates: Rates): readonly string[] {
  const [list] = kinds;
  if (list === undefined) return [];
  const lines = [
    `| request | ${subjects.map(({ rows }) => `${rows.toLocaleString('en')} rows, a second (of the list)`).join(' | ')} | cost growth | target |`,
    `|---|${subjects.map(() => '---').join('|')}|---|---|`,
  ];
  for (const kind of kinds) {
    const of = (rows: number): readonly number[] => rates.get(cellName(kind, rows)) ?? [];
    const shown = subjects.map(({ rows }) => {
      const lists = rates.get(cellName(list, rows)) ?? [];
      const ratio = spreadOf(of(rows).map((rate, round) => rate / (lists[round] ?? Number.NaN)));
      return `${Math.round(spreadOf(of(rows)).median)} (${ratio.median.toFixed(2)})`;
    });
    const compared = subjects.filter(({ rows }) => rows >= (kind.from ?? 0));
    const few = compared[0];
    const many = compared.at(-1);
    const growth =
      few === undefined || many === undefined || few === many
        ? undefined
        : growthOf(of(few.rows), of(many.rows));
    const judged =
      growth === undefined
        ? '- | -'
        : `${spreadText(growth)} | <= ${searchGrowthMost} ${verdict(growth.median <= searchGrowthMost)}`;
    lines.push(`| ${kind.title} | ${shown.join(' | ')} | ${judged} |`);
  }
  return lines;
}

function growthOf(few: readonly number[], many: readonly number[]): ReturnType<typeof spreadOf> {
  return spreadOf(few.map((rate, round) => rate / (many[round] ?? Number.NaN)));
}

/** Documents a second of which the embedded store makes the index after a start; on PostgreSQL the migration does. */
async function measureMaking(run: Run): Promise<unknown> {
  const place = run.engine.newPlace();
  if (place.store !== 'sqlite') return undefined;
  const rows = Math.min(madeRowsMost, Math.max(...run.options.rows[run.store]));
  seedReports(place.folder, rows, false);
  const begun = performance.now();
  const server = await start(run, place);
  try {
    const answers = async (): Promise<boolean> => {
      const { status } = await fetch(`http://${server.host}:${server.port}/api/v1/reports?q=common`);
      if (status !== 200 && status !== statusUnavailable) throw new Error(`a search is answered ${status}`);
      return status === 200;
    };
    while (!(await answers())) await delay(5);
    const seconds = (performance.now() - begun) / 1000;
    say(
      run,
      `the index of ${rows} documents is made after a start: ${Math.round(rows / seconds)} documents a second`,
      '',
    );
    return { rows, seconds };
  } finally {
    await server.stop();
  }
}
