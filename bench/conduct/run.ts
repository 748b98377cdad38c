/**
 * `npm run conduct:peers`: the suite of conduct against other servers, and against proxies before one Comity, each twice; only verdicts that
 * are the same in both rounds count. Receivers and senders of webhooks are judged once. Prints a row for each program; `--write` puts the rows into docs/comparison.md, `--only NAMES` runs
 * some programs and leaves the rows of others, and `--json FILE` writes every report.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { apiClauses } from '../../conduct/all-clauses.ts';
import { groups } from '../../conduct/clause.ts';
import { byGroup, type Judged, judgeApi, type Report } from '../../conduct/judge.ts';
import { targetAt } from '../../conduct/target.ts';
import { comity, type Program } from './program.ts';
import { proxies } from './proxies.ts';
import { servers } from './servers.ts';
import { putRows, tableOf } from './table.ts';
import { judgeReceivers, judgeSenders, webhooksTable } from './webhooks.ts';

const rounds = 2;
/** Clauses of one group that a cell names. */
const namedMax = 10;
const sample = { title: 'note {random}', done: false };
const change = { title: 'other {random}' };
/** Groups of which an API says something; the others are of proxies and of webhooks. */
const shownGroups = groups.filter((each) => each !== 'tunnel' && each !== 'receiver');

/** The clauses whose verdict is the same in each round, and the ids of the others. */
type Steady = { readonly clauses: readonly Judged[]; readonly unsteady: readonly string[] };

type Outcome = { readonly program: Program } & (Steady | { readonly why: string });

const { values } = parseArgs({
  options: { write: { type: 'boolean' }, json: { type: 'string' }, only: { type: 'string' } },
});
const names = values.only?.toLowerCase().split(',');
const folder = mkdtempSync(join(tmpdir(), 'comity-conduct-'));
try {
  const origin = await comity.start(makeFolder('Comity'), 0);
  try {
    const port = Number(new URL(origin.url).port);
    const direct: Outcome = { program: comity, ...(await judge(comity, origin.url)) };
    const others = [direct, ...(await judgeAll(servers, port))];
    const behind = await judgeAll(proxies, port);
    const webhooks = { isWanted, makeFolder };
    const [receivers, senders] = [await judgeReceivers(webhooks), await judgeSenders(webhooks)];
    const tables = {
      servers: { head: ['program', ...shownGroups, 'differs between rounds'], rows: others.map(serverRow) },
      targets: { head: ['program', 'configured in', '`target.json`'], rows: servers.map(targetRow) },
      proxies: {
        head: ['before Comity', 'fails there', 'gets a warning there', 'applies no longer'],
        rows: behind.map((each) => proxyRow(direct, each)),
      },
      receivers: webhooksTable('receiver', receivers),
      senders: webhooksTable('sender', senders),
    };
    for (const [name, table] of Object.entries(tables)) {
      if (table.rows.length === 0) continue;
      process.stdout.write(`${tableOf(table)}\n\n`);
      if (values.write === true)
        putRows({ page: 'docs/comparison.md', name: `conduct:peers ${name}` }, table, [
          comity,
          ...servers,
          ...proxies,
        ]);
    }
    if (values.json !== undefined)
      writeFileSync(values.json, JSON.stringify({ others, behind, receivers, senders }, undefined, 2));
  } finally {
    await origin.stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function makeFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

async function judgeAll(programs: readonly Program[], origin: number): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const program of programs) if (isWanted(program)) outcomes.push(await judgeProgram(program, origin));
  return outcomes;
}

function isWanted({ name }: { readonly name: string }): boolean {
  return names === undefined || names.includes(name.toLowerCase());
}

async function judgeProgram(program: Program, origin: number): Promise<Outcome> {
  try {
    const running = await program.start(makeFolder(program.name), origin);
    try {
      return { program, ...(await judge(program, running.url)) };
    } finally {
      await running.stop();
    }
  } catch (error) {
    const [first = ''] = (error instanceof Error ? error.message : String(error)).trim().split('\n');
    process.stderr.write(`${program.name}: ${error instanceof Error ? error.message : error}\n`);
    return { program, why: `cannot be judged: ${first}` };
  }
}

async function judge({ name, collection, target }: Program, url: string): Promise<Steady> {
  const reports: Report[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const judged = { ...targetAt(`${url}${collection}`, {}), sample, change, ...target };
    const report = await judgeApi([judged], apiClauses, { mayWrite: true, progress: () => undefined });
    process.stderr.write(`${name}, round ${round}: ${JSON.stringify(report.summary)}\n`);
    for (const path of report.left) process.stderr.write(`${name} keeps ${path}\n`);
    reports.push(report);
  }
  const [first, ...others] = reports.map(({ clauses }) => clauses);
  const isSteady = ({ verdict }: Judged, index: number): boolean =>
    others.every((clauses) => clauses[index]?.verdict === verdict);
  const clauses = (first ?? []).filter(isSteady);
  return {
    clauses,
    unsteady: (first ?? []).filter((each) => !clauses.includes(each)).map(({ id }) => id),
  };
}

/** Numbers of clauses that hold, fail and get a warning, by group. */
function serverRow(outcome: Outcome): readonly string[] {
  const { name, version } = outcome.program;
  if ('why' in outcome) return [`${name} ${version}`, outcome.why, ...shownGroups.map(() => '')];
  const cells = shownGroups.map((group) => {
    const of = outcome.clauses.filter((each) => each.group === group);
    const count = (verdict: string): number => of.filter((each) => each.verdict === verdict).length;
    const counts = [count('holds'), count('fails'), count('warning')];
    return counts.every((each) => each === 0) ? '-' : counts.join(' / ');
  });
  const unsteady = outcome.unsteady.map((id) => `\`${id}\``).join(', ') || '-';
  return [`${name} ${version}`, ...cells, unsteady];
}

/** What repeats the judgement of a program without this repository. */
function targetRow({ name, version, collection, target, file = 'servers.ts' }: Program): readonly string[] {
  const written = JSON.stringify({ collection, sample, change, ...target });
  return [`${name} ${version}`, `\`bench/conduct/${file}\``, `\`${written}\``];
}

/** The clauses whose verdict a proxy changes, from that of the origin. */
function proxyRow(direct: Outcome, outcome: Outcome): readonly string[] {
  const name = `${outcome.program.name} ${outcome.program.version}`;
  if ('why' in outcome) return [name, outcome.why, '', ''];
  const standing = 'clauses' in direct ? direct.clauses : [];
  const verdicts = new Map(standing.map(({ id, verdict }) => [id, verdict]));
  const applying = new Map(byGroup(standing.filter(({ verdict }) => verdict !== 'not-applicable')));
  const changed = outcome.clauses.filter(({ id, verdict }) => verdict !== verdicts.get(id));
  const named = (verdict: string): string =>
    byGroup(changed.filter((clause) => clause.verdict === verdict))
      .flatMap(([group, own]) => {
        if (own.length > 1 && own.length === applying.get(group)?.length) return [`all of ${group}`];
        if (own.length > namedMax) return [`${own.length} of ${group}`];
        return own.map(({ id }) => `\`${id}\``);
      })
      .join(', ') || 'none';
  return [name, named('fails'), named('warning'), named('not-applicable')];
}
