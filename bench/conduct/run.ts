/**
 * `npm run conduct:peers`: the suite of conduct against other servers, and against proxies before one Comity. Prints a table by group and what
 * each proxy changes; `--write` puts both into docs/comparison.md, `--json FILE` writes every report.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { apiClauses } from '../../conduct/all-clauses.ts';
import { groups } from '../../conduct/clause.ts';
import { judgeApi, type Report } from '../../conduct/judge.ts';
import { targetAt } from '../../conduct/target.ts';
import { comity, type Program } from './program.ts';
import { proxies } from './proxies.ts';
import { servers } from './servers.ts';

const page = join(import.meta.dirname, '../../docs/comparison.md');
const marks = [
  '<!-- written by npm run conduct:peers -->',
  '<!-- end of what npm run conduct:peers wrote -->',
] as const;
const sample = { title: 'note {random}', done: false };
const change = { title: 'other {random}' };

type Outcome =
  | { readonly program: Program; readonly report: Report }
  | { readonly program: Program; readonly why: string };

const { values } = parseArgs({ options: { write: { type: 'boolean' }, json: { type: 'string' } } });
const folder = mkdtempSync(join(tmpdir(), 'comity-conduct-'));
try {
  const origin = await comity.start(makeFolder('Comity'), 0);
  try {
    const port = Number(new URL(origin.url).port);
    const direct = await judge(comity, origin.url);
    const others: Outcome[] = [];
    for (const program of servers) others.push(await judgeProgram(program, port));
    const behind: Outcome[] = [];
    for (const program of proxies) behind.push(await judgeProgram(program, port));
    const text = [
      groupTable([{ program: comity, report: direct }, ...others]),
      proxyTable(direct, behind),
    ].join('\n\n');
    process.stdout.write(`${text}\n`);
    if (values.json !== undefined)
      writeFileSync(values.json, JSON.stringify({ direct, others, behind }, undefined, 2));
    if (values.write === true) writePage(text);
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

async function judgeProgram(program: Program, origin: number): Promise<Outcome> {
  try {
    const running = await program.start(makeFolder(program.name), origin);
    try {
      return { program, report: await judge(program, running.url) };
    } finally {
      await running.stop();
    }
  } catch (error) {
    const [first = ''] = (error instanceof Error ? error.message : String(error)).trim().split('\n');
    return { program, why: `${program.name} cannot be judged: ${first}` };
  }
}

function judge({ name, collection }: Program, url: string): Promise<Report> {
  const target = { ...targetAt(`${url}${collection}`, {}), sample, change };
  return judgeApi([target], apiClauses, {
    mayWrite: true,
    progress: (done, all) => void (done === all - 1 && process.stderr.write(`${name}: ${all} clauses\n`)),
  });
}

/** Numbers of clauses that hold, fail and get a warning, by group. */
function groupTable(outcomes: readonly Outcome[]): string {
  const known = outcomes.filter((each) => 'report' in each);
  const rows = groups.map((group) => {
    const cells = known.map(({ report }) => {
      const of = report.clauses.filter((each) => each.group === group);
      const count = (verdict: string): number => of.filter((each) => each.verdict === verdict).length;
      const [holds, fails, warnings] = [count('holds'), count('fails'), count('warning')];
      return holds + fails + warnings === 0 ? '-' : `${holds} / ${fails} / ${warnings}`;
    });
    return cells.every((cell) => cell === '-') ? [] : [`| ${[group, ...cells].join(' | ')} |`];
  });
  const names = known.map(({ program: { name, version } }) => `${name} ${version}`);
  const missing = outcomes.flatMap((each) => ('why' in each ? [each.why] : []));
  return [
    `| group | ${names.join(' | ')} |`,
    `| --- | ${names.map(() => '---').join(' | ')} |`,
    ...rows.flat(),
    ...missing.flatMap((why) => ['', `${why}.`]),
  ].join('\n');
}

/** The clauses whose verdict a proxy changes, from that of the origin. */
function proxyTable(direct: Report, behind: readonly Outcome[]): string {
  const verdicts = new Map(direct.clauses.map(({ id, verdict }) => [id, verdict]));
  const rows = behind.map((each) => {
    if ('why' in each) return `| ${each.program.name} | ${each.why} | |`;
    const changed = each.report.clauses.filter(({ id, verdict }) => verdict !== verdicts.get(id));
    const named = (verdict: string): string =>
      changed
        .filter((clause) => clause.verdict === verdict)
        .map(({ id }) => `\`${id}\``)
        .join(', ') || 'none';
    return `| ${each.program.name} | ${named('fails')} | ${named('warning')} | ${named('not-applicable')} |`;
  });
  return [
    '| before Comity | fails there | gets a warning there | applies no longer |',
    '| --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

function writePage(text: string): void {
  const before = readFileSync(page, 'utf8');
  const [begin, end] = [before.indexOf(marks[0]), before.indexOf(marks[1])];
  if (begin === -1 || end === -1) throw new Error(`${page} lacks ${marks.join(' and ')}`);
  writeFileSync(page, `${before.slice(0, begin + marks[0].length)}\n\n${text}\n\n${before.slice(end)}`);
}
