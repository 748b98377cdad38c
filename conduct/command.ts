/**
 * The command: what to judge, what to print, and the exit code. `comity conduct` and the package's own command run the same code, each
 * with its own reading of the command line.
 */
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { apiClauses, type DescribedClause, describeClauses } from './all-clauses.ts';
import type { Clause } from './clause.ts';
import { reasonOf } from './connection.ts';
import { byGroup, judgeApi, judgeClauses, type Progress, type Report, selectClauses } from './judge.ts';
import { Limited } from './patience.ts';
import { jsonReport, junitReport } from './report/machine.ts';
import { pageReport } from './report/page.ts';
import { textReport } from './report/text.ts';
import { unknownSurvey } from './survey.ts';
import { findTargets, type Target, TargetMistake, targetAt } from './target.ts';
import { NoAnswer } from './visit.ts';
import { receiverClauses } from './webhooks/receiver.ts';
import { addresses, listenForSender } from './webhooks/sender.ts';
import { type Scheme, schemes } from './webhooks/signature.ts';

export type ConductOptions = {
  readonly target?: string | undefined;
  /** The URL of a receiver of webhooks, to judge that. */
  readonly receiver?: string | undefined;
  /** Listen for a sender of webhooks, and judge that. */
  readonly sender?: boolean | undefined;
  readonly scheme?: string | undefined;
  readonly secret?: string | undefined;
  /** A file with a secret a line, which is read when the run ends: for senders that make the secrets themselves. */
  readonly secrets?: string | undefined;
  /** Where a sender is listened for; any free port unless given. */
  readonly port?: number | undefined;
  /** How long a sender is listened for; 60 unless given. */
  readonly seconds?: number | undefined;
  /** `Name: value`, sent with every request that is not anonymous. */
  readonly header?: readonly string[] | undefined;
  readonly insecure?: boolean | undefined;
  readonly only?: readonly string[] | undefined;
  readonly json?: boolean | undefined;
  readonly junit?: string | undefined;
  readonly html?: string | undefined;
  readonly verbose?: boolean | undefined;
  readonly list?: boolean | undefined;
  readonly explain?: string | undefined;
  readonly yes?: boolean | undefined;
};

/** Where the command prints and asks. */
export type Screen = {
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
  readonly hasColor: boolean;
  /** Undefined where no person is there to answer. */
  readonly confirm: ((question: string) => Promise<boolean>) | undefined;
  readonly progress: Progress;
};

export const conductExits = { holds: 0, fails: 1, mistake: 2 } as const;

/** @returns 0 where no clause fails, 1 where some do, 2 where nothing could be judged or a limit of the server ended the run */
export async function runConduct(
  url: string | undefined,
  options: ConductOptions,
  screen: Screen,
): Promise<number> {
  const use = { options, screen };
  try {
    if (options.explain !== undefined) return explain(options.explain, screen);
    if (options.list === true) return list(describeClauses(), screen);
    if (
      [url, options.receiver, options.sender || undefined].filter((each) => each !== undefined).length !== 1
    )
      throw new TargetMistake(
        'give the URL of an API, --receiver URL, or --sender; --list shows what would be judged',
      );
    const report = await judge(url, use);
    await print(report, use);
    return report.summary.fails === 0 ? conductExits.holds : conductExits.fails;
  } catch (error) {
    if (![TargetMistake, NoAnswer, Limited].some((kind) => error instanceof kind)) throw error;
    screen.err(`conduct: ${(error as Error).message}`);
    return conductExits.mistake;
  }
}

type Use = { readonly options: ConductOptions; readonly screen: Screen };

function judge(url: string | undefined, use: Use): Promise<Report> {
  const { receiver, sender } = use.options;
  if (sender === true) return judgeSender(use);
  return receiver === undefined ? judgeUrl(url ?? '', use) : judgeReceiver(receiver, use);
}

async function judgeUrl(url: string, { options, screen }: Use): Promise<Report> {
  const clauses = select(apiClauses, options);
  const headers = headersOf(options);
  const targets = await findTargets(url, { file: options.target, headers, isInsecure: options.insecure });
  const mayWrite = await mayWriteTo(targets[0], { options, screen });
  return judgeApi(targets, clauses, { mayWrite, progress: screen.progress });
}

async function judgeReceiver(url: string, { options, screen }: Use): Promise<Report> {
  const { scheme, secret } = options;
  if (scheme === undefined || secret === undefined)
    throw new TargetMistake('--receiver needs --scheme and --secret');
  if (!schemes.includes(scheme as Scheme))
    throw new TargetMistake(`--scheme is one of ${schemes.join(', ')}, not ${scheme}`);
  const clauses = select(receiverClauses({ scheme: scheme as Scheme, secret }), options);
  const target = targetAt(url, { headers: headersOf(options), isInsecure: options.insecure });
  if (!(await mayWriteTo(target, { options, screen })))
    throw new TargetMistake('a receiver is judged by deliveries, which are writes: give --yes');
  return judgeClauses({ target, survey: unknownSurvey, mayWrite: true }, clauses, screen.progress);
}

const listenSeconds = 60;

async function judgeSender({ options, screen }: Use): Promise<Report> {
  const { secret = newSecret(), secrets, port = 0, seconds = listenSeconds } = options;
  const run = await listenForSender(port).catch((error: unknown) => {
    throw new TargetMistake(`nothing can listen: ${reasonOf(error)}`);
  });
  screen.err('Register these URLs at the sender, and let it send some events:');
  for (const [index, each] of run.urls.entries())
    screen.err(`  ${each}  answers ${Object.values(addresses)[index]}`);
  screen.err(
    secrets === undefined
      ? `Each has the secret ${secret}`
      : `Write their secrets to ${secrets}, one a line.`,
  );
  screen.err(`The run ends after ${seconds} s.`);
  for (let second = 0; second < seconds; second += 1) {
    screen.progress(second, seconds, { id: 'listening' });
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  return run.finish(secrets === undefined ? [secret] : await readSecrets(secrets));
}

async function readSecrets(path: string): Promise<readonly string[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new TargetMistake(`${path} cannot be read: ${reasonOf(error)}`);
  });
  return text.split(/\r?\n/).filter((line) => line.trim() !== '');
}

/** 24 octets, as Standard Webhooks 1.0 has them. */
function newSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`;
}

function select(clauses: readonly Clause[], { only = [] }: ConductOptions): readonly Clause[] {
  const selected = selectClauses(
    clauses,
    only.flatMap((each) => each.split(',')),
  );
  if ('unknown' in selected)
    throw new TargetMistake(`no clause and no group is named ${selected.unknown}: see --list`);
  return selected.clauses;
}

async function print(report: Report, { options, screen }: Use): Promise<void> {
  if (options.junit !== undefined) await write(options.junit, junitReport(report));
  if (options.html !== undefined) await write(options.html, pageReport(report));
  const style = { hasColor: screen.hasColor, isVerbose: options.verbose === true };
  screen.out(options.json === true ? jsonReport(report) : textReport(report, style));
}

async function write(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (error) {
    throw new TargetMistake(`${path} cannot be written: ${reasonOf(error)}`);
  }
}

/** A server of this machine may be written to; for another somebody answers, or `--yes` did. */
async function mayWriteTo(target: Target | undefined, { options, screen }: Use): Promise<boolean> {
  if (target === undefined || options.yes === true || isLoopback(target.address.host)) return true;
  const question = `Create, change and delete documents in ${target.url}${target.collection}?`;
  if (screen.confirm !== undefined) return screen.confirm(question);
  screen.err(
    `conduct: ${target.host} is another machine: only clauses that write nothing are judged without --yes`,
  );
  return false;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127\./.test(host);
}

function headersOf({ header = [] }: ConductOptions): Readonly<Record<string, string>> {
  return Object.fromEntries(header.map(headerOf));
}

function headerOf(written: string): readonly [string, string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*(.*)$/.exec(written) ?? [];
  if (name === undefined || value === undefined)
    throw new TargetMistake(`--header takes "Name: value", not ${JSON.stringify(written)}`);
  return [name, value];
}

function list(clauses: readonly DescribedClause[], screen: Screen): number {
  for (const [group, own] of byGroup(clauses)) {
    screen.out(group);
    for (const { id, title, section } of own) screen.out(`  ${id.padEnd(28)} ${title} (${section})`);
  }
  return conductExits.holds;
}

function explain(id: string, screen: Screen): number {
  const clause = describeClauses().find((each) => each.id === id);
  if (clause === undefined) throw new TargetMistake(`no clause is named ${id}: see --list`);
  const { title, section, level, group, writes } = clause;
  screen.out(`${id} (${group})\n\n${title}.\n`);
  screen.out(`Source    ${section}`);
  screen.out(
    `Deviation ${level === 'must' ? 'fails' : 'gets a warning: the standard says should, or leaves it open'}`,
  );
  screen.out(`Writes    ${writes === true ? 'yes: it creates a document, and removes it' : 'no'}`);
  return conductExits.holds;
}
