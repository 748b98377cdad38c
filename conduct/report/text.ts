/** A report for people: a scorecard by group, then what fails and what gets a warning, with the exchange that decided. */
import { type Verdict, verdicts } from '../clause.ts';
import { byGroup, type Judged, type Report, summaryOf } from '../judge.ts';

export type Style = { readonly hasColor: boolean; readonly isVerbose: boolean };

const colors = { fails: 31, warning: 33, holds: 32, 'not-applicable': 90 } as const;
const exchangeLinesMax = 12;

export function textReport({ subject, summary, clauses, left }: Report, style: Style): string {
  const paint = (verdict: Verdict, text: string): string =>
    style.hasColor ? `\u001b[${colors[verdict]}m${text}\u001b[0m` : text;
  const groups = byGroup(clauses);
  const width = Math.max(...groups.map(([group]) => group.length), 5);
  const line = (name: string, counts: Report['summary']): string => {
    const cells = verdicts.map((verdict) => {
      const count = counts[verdict];
      const text = String(count === 0 ? '-' : count).padStart(7);
      return count === 0 ? text : paint(verdict, text);
    });
    return `${name.padEnd(width)} ${cells.join(' ')}`;
  };
  const shown: readonly Verdict[] = style.isVerbose
    ? ['fails', 'warning', 'not-applicable']
    : ['fails', 'warning'];
  const details = shown.flatMap((verdict) => {
    const of = clauses.filter((each) => each.verdict === verdict);
    return of.length === 0
      ? []
      : ['', paint(verdict, headings[verdict]), ...of.flatMap((each) => detail(each, verdict))];
  });
  return [
    `Conduct of ${subject}`,
    '',
    `${''.padEnd(width)}   holds   fails warning     n/a`,
    ...groups.map(([group, own]) => line(group, summaryOf(own))),
    line('all', summary),
    ...details,
    ...(left.length === 0
      ? []
      : ['', `Not removed, because the server did not let the run: ${left.join(', ')}`]),
    '',
    verdictLine(summary),
  ].join('\n');
}

const headings: Readonly<Record<Verdict, string>> = {
  fails: 'Fails',
  warning: 'Warnings',
  'not-applicable': 'Not applicable',
  holds: 'Holds',
};

function detail({ id, title, section, why, exchanges }: Judged, verdict: Verdict): readonly string[] {
  const last = exchanges.at(-1);
  const isShown = verdict === 'fails' && last !== undefined;
  const evidence = isShown ? [...excerpt(last.request, '> '), ...excerpt(last.answer, '< ')] : [];
  return [
    `  ${id} (${section})`,
    `    ${title}.`,
    `    Found: ${why}.`,
    ...evidence.map((each) => `      ${each}`),
  ];
}

function excerpt(text: string, mark: string): readonly string[] {
  const lines = text.trimEnd().split('\n');
  const shown = lines.slice(0, exchangeLinesMax).map((each) => `${mark}${each.slice(0, 100)}`.trimEnd());
  return lines.length > exchangeLinesMax
    ? [...shown, `${mark}... ${lines.length - exchangeLinesMax} more lines`]
    : shown;
}

function verdictLine(summary: Report['summary']): string {
  const judged = summary.holds + summary.fails + summary.warning;
  const rest = `${summary.warning} warnings, ${summary['not-applicable']} not applicable`;
  return summary.fails === 0
    ? `No clause fails: ${summary.holds} of ${judged} hold, ${rest}.`
    : `${summary.fails} of ${judged} clauses fail: ${summary.holds} hold, ${rest}.`;
}
