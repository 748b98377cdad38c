/** Receivers and senders of others, judged by the clauses of webhooks, and a table of each. */
import type { Verdict } from '../../conduct/clause.ts';
import { reasonOf } from '../../conduct/connection.ts';
import { judgeClauses, type Report } from '../../conduct/judge.ts';
import { unknownSurvey } from '../../conduct/survey.ts';
import { targetAt } from '../../conduct/target.ts';
import { receiverClauses } from '../../conduct/webhooks/receiver.ts';
import { listenForSender, silenceMs } from '../../conduct/webhooks/sender.ts';
import { type Receiver, receiverSecret, receivers } from './receivers.ts';
import { type Sender, senders } from './senders.ts';
import type { Table } from './table.ts';

/** Long enough for a silent address, whatever comes to it after the first seconds. */
const listenMs = silenceMs + 5000;

type Named = { readonly name: string; readonly version: string };
export type JudgedWebhooks = Named & ({ readonly report: Report } | { readonly why: string });

type Judging = {
  readonly isWanted: (program: Named) => boolean;
  /** Where each may install what it needs. */
  readonly makeFolder: (name: string) => string;
};

export function judgeReceivers(judging: Judging): Promise<readonly JudgedWebhooks[]> {
  return judgeAll(receivers, judging, judgeReceiver);
}

export function judgeSenders(judging: Judging): Promise<readonly JudgedWebhooks[]> {
  return judgeAll(senders, judging, judgeSender);
}

async function judgeAll<T extends Named>(
  programs: readonly T[],
  { isWanted, makeFolder }: Judging,
  judge: (program: T, folder: string) => Promise<Report>,
): Promise<readonly JudgedWebhooks[]> {
  const judged: JudgedWebhooks[] = [];
  for (const program of programs.filter(isWanted)) {
    const { name, version } = program;
    try {
      const report = await judge(program, makeFolder(name.replaceAll(/\W+/g, '-')));
      process.stderr.write(`${name}: ${JSON.stringify(report.summary)}\n`);
      judged.push({ name, version, report });
    } catch (error) {
      const [first = ''] = reasonOf(error).trim().split('\n');
      process.stderr.write(`${name}: ${reasonOf(error)}\n`);
      judged.push({ name, version, why: `cannot be judged: ${first}` });
    }
  }
  return judged;
}

async function judgeReceiver({ scheme, path, start }: Receiver, folder: string): Promise<Report> {
  const running = await start(folder);
  try {
    const target = targetAt(`${running.url}${path}`, {});
    const clauses = receiverClauses({ scheme, secret: receiverSecret });
    return await judgeClauses({ target, survey: unknownSurvey, mayWrite: true }, clauses, () => undefined);
  } finally {
    await running.stop();
  }
}

async function judgeSender({ start }: Sender, folder: string): Promise<Report> {
  const run = await listenForSender(0);
  const stop = await start(folder, run.urls, receiverSecret).catch(async (error: unknown) => {
    await run.finish([]);
    throw error;
  });
  await new Promise((resolve) => setTimeout(resolve, listenMs));
  const report = await run.finish([receiverSecret]);
  await stop();
  return report;
}

/** Numbers of clauses that hold, and the others by name. */
export function webhooksTable(kind: 'receiver' | 'sender', judged: readonly JudgedWebhooks[]): Table {
  const rows = judged.map((each) => {
    const name = `${each.name} ${each.version}`;
    if ('why' in each) return [name, each.why, '', '', ''];
    const { summary, clauses } = each.report;
    const named = (verdict: Verdict): string =>
      clauses
        .filter((clause) => clause.verdict === verdict)
        .map(({ id }) => `\`${id}\``)
        .join(', ') || 'none';
    return [name, String(summary.holds), named('fails'), named('warning'), named('not-applicable')];
  });
  return { head: [kind, 'hold', 'fail', 'get a warning', 'do not apply'], rows };
}
