/**
 * `npm run clients`: HTTP clients of several languages, fetched with pinned versions, in one round each at a real Comity and at a server that
 * shows their habits with QUERY. Prints three tables; `--write` puts them into docs/guides/clients.md, `--only NAMES` runs some clients and
 * leaves the rows of others, and `--folder PATH` keeps what was fetched. A client that cannot be had gets a row that says so.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { comity } from '../conduct/program.ts';
import { putRows, tableOf } from '../conduct/table.ts';
import { type Client, clients, type Mode, titleOf } from './clients.ts';
import { cacheOf, type Habits, habitsOf, heads, startHabitServer } from './habits.ts';
import { type Agent, startAgent } from './line-exchange.ts';
import { roundOf, steps } from './round.ts';

const notRun = 'not run: ';

type Row = readonly string[];
type Rows = { readonly round: Row; readonly retries: Row; readonly redirects: Row; readonly codings: Row };

const { values } = parseArgs({
  options: { write: { type: 'boolean' }, only: { type: 'string' }, folder: { type: 'string' } },
});
const names = values.only?.toLowerCase().split(',');
const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'comity-clients-'));
mkdirSync(folder, { recursive: true });
const server = await startHabitServer();
const data = mkdtempSync(join(tmpdir(), 'comity-clients-data-'));
try {
  const origin = await comity.start(data, 0);
  try {
    await runAll(origin.url);
  } finally {
    await origin.stop();
  }
} finally {
  server.stop();
  rmSync(data, { recursive: true, force: true });
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

async function runAll(url: string): Promise<void> {
  const all: Rows[] = [];
  for (const client of clients) {
    if (names !== undefined && !names.includes(client.name.toLowerCase())) continue;
    process.stderr.write(`${client.name}\n`);
    all.push(await rowsOf(client, url));
  }
  const tables = {
    round: { head: ['client', ...steps, 'run'], rows: all.map(({ round }) => round) },
    retries: {
      head: ['client', ...heads.retry, 'setting', 'with it', 'cache', 'a QUERY in it'],
      rows: all.map(({ retries }) => retries),
    },
    redirects: {
      head: ['client', ...heads.follow, 'setting', 'with it'],
      rows: all.map(({ redirects }) => redirects),
    },
    codings: {
      head: ['client', ...heads.decode, 'setting', 'with it'],
      rows: all.map(({ codings }) => codings),
    },
  };
  for (const [name, table] of Object.entries(tables)) {
    process.stdout.write(`${tableOf(table)}\n\n`);
    // A client that this machine lacks keeps the row of an earlier run.
    const rows = table.rows.filter(([, first = '']) => !first.startsWith(notRun));
    if (values.write === true)
      putRows({ page: 'docs/guides/clients.md', name: `clients ${name}` }, { ...table, rows }, clients);
  }
}

async function rowsOf(client: Client, url: string): Promise<Rows> {
  try {
    await client.fetch(folder);
    const title = await titleOf(client);
    const round = await inMode(client, 'plain', (agent) => roundOf(agent, url));
    const plain = await inMode(client, 'plain', (agent) => habitsOf(server, agent));
    const { retry, follow, decode, cache } = client.settings;
    const hasSet = (retry ?? follow ?? decode) !== undefined;
    const set = hasSet ? await inMode(client, 'set', (agent) => habitsOf(server, agent)) : plain;
    const stored = cache && (await inMode(client, 'cache', (agent) => cacheOf(server, agent)));
    const withIt = (kind: keyof Habits): Row => {
      const words = client.settings[kind];
      return words === undefined ? ['-', '-'] : [words, changeOf(kind, plain[kind], set[kind])];
    };
    return {
      round: [title, ...round, new Date().toISOString().slice(0, 10)],
      retries: [title, ...plain.retry, ...withIt('retry'), cache ?? '-', stored ?? '-'],
      redirects: [title, ...plain.follow, ...withIt('follow')],
      codings: [title, ...plain.decode, ...withIt('decode')],
    };
  } catch (error) {
    const [first = ''] = (error instanceof Error ? error.message : String(error)).trim().split('\n');
    process.stderr.write(`${client.name}: ${error instanceof Error ? error.message : error}\n`);
    const row = [client.name, `${notRun}${first.slice(0, 80)}`];
    return { round: row, retries: row, redirects: row, codings: row };
  }
}

/** The cells that the setting changes. */
function changeOf(kind: keyof Habits, plain: Row, set: Row): string {
  const changed = set.flatMap((cell, index) =>
    cell === plain[index] ? [] : [`${heads[kind][index]}: ${cell}`],
  );
  return changed.join('; ') || 'the same';
}

async function inMode<Result>(
  client: Client,
  mode: Mode,
  run: (agent: Agent) => Promise<Result>,
): Promise<Result> {
  const agent = startAgent(client.start(folder, mode));
  try {
    return await run(agent);
  } finally {
    await agent.stop();
  }
}
