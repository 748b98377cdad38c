/** Reports for programs: JSON, and the XML of JUnit that CI servers show. */
import { byGroup, type Judged, type Report, summaryOf } from '../judge.ts';

/** `{summary, clauses: [{id, title, section, verdict, why, exchange}]}`; `exchange` is the last, `exchangesBefore` are those before it. */
export function jsonReport({ subject, summary, clauses, left }: Report): string {
  const rows = clauses.map(({ id, title, group, section, verdict, why, exchanges }) => ({
    ...{ id, title, group, section, verdict, why },
    exchange: exchanges.at(-1) ?? null,
    exchangesBefore: exchanges.slice(0, -1),
  }));
  return JSON.stringify({ subject, summary, clauses: rows, left }, null, 2);
}

/** A suite for each group; a warning passes and stands in the output, what cannot apply is skipped. */
export function junitReport({ subject, clauses }: Report): string {
  const suites = byGroup(clauses).map(([group, own]) => suiteOf(group, own));
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="${xml(subject)}">\n${suites.join('')}</testsuites>\n`;
}

function suiteOf(group: string, clauses: readonly Judged[]): string {
  const { fails, 'not-applicable': skipped } = summaryOf(clauses);
  const counts = `tests="${clauses.length}" failures="${fails}" skipped="${skipped}"`;
  return `  <testsuite name="${xml(group)}" ${counts}>\n${clauses.map(caseOf).join('')}  </testsuite>\n`;
}

function caseOf({ id, title, group, section, verdict, why, exchanges }: Judged): string {
  const evidence = exchanges.map(({ request, answer }) => `${request}\n\n${answer}`).join('\n\n');
  const content = {
    holds: '',
    warning: `      <system-out>${xml(`${why}\n\n${evidence}`)}</system-out>\n`,
    'not-applicable': `      <skipped message="${xml(why)}"/>\n`,
    fails: `      <failure message="${xml(why)}">${xml(`${title} (${section})\n\n${evidence}`)}</failure>\n`,
  }[verdict];
  return `    <testcase classname="${xml(group)}" name="${xml(`${id}: ${title}`)}">\n${content}    </testcase>\n`;
}

/** Text for XML 1.0, without the characters that it cannot have. */
function xml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/g, '\ufffd');
}
