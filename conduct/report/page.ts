/** A report as one HTML page, which needs nothing else: no script, no other file. */
import { verdicts } from '../clause.ts';
import { byGroup, type Judged, type Report, summaryOf } from '../judge.ts';

const style = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
th:first-child { text-align: left; }
details { border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: .4rem 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 7.5rem; }
code, pre { font: 13px/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .6rem; background: color-mix(in srgb, currentColor 7%, transparent); border-radius: 4px; }
.fails b { color: light-dark(#b3261e, #ff8a80); }
.warning b { color: light-dark(#8a5300, #ffc266); }
.holds b { color: light-dark(#1b6e3c, #7bd8a0); }
.not-applicable { opacity: .75; }
`;

const names = {
  holds: 'holds',
  fails: 'fails',
  warning: 'warning',
  'not-applicable': 'not applicable',
} as const;

export function pageReport({ subject, summary, clauses, left }: Report): string {
  const groups = byGroup(clauses);
  const rows = groups.map(([group, own]) => {
    const counts = summaryOf(own);
    const cells = verdicts.map((verdict) => `<td>${counts[verdict]}</td>`);
    return `<tr><th scope="row"><a href="#${group}">${html(group)}</a></th>${cells.join('')}</tr>`;
  });
  const sections = groups.map(
    ([group, own]) => `<h2 id="${group}">${html(group)}</h2>\n${own.map(clauseOf).join('\n')}`,
  );
  const rest =
    left.length === 0
      ? ''
      : `<p>Not removed: ${left.map((each) => `<code>${html(each)}</code>`).join(', ')}</p>`;
  const total = verdicts.map((verdict) => `${summary[verdict]} ${names[verdict]}`).join(', ');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Conduct of ${html(subject)}</title>
<style>${style}</style>
<h1>Conduct of ${html(subject)}</h1>
<p>${total}</p>
${rest}
<table>
<tr><th scope="col">Group</th>${verdicts.map((each) => `<th scope="col">${names[each]}</th>`).join('')}</tr>
${rows.join('\n')}
</table>
${sections.join('\n')}
</html>
`;
}

function clauseOf({ id, title, section, verdict, why, exchanges }: Judged): string {
  const evidence = exchanges.map(
    ({ request, answer }) => `<pre>${html(request.trimEnd())}</pre><pre>${html(answer.trimEnd())}</pre>`,
  );
  const open = verdict === 'fails' ? ' open' : '';
  const found = why === '' ? '' : `<p>Found: ${html(why)}.</p>`;
  return `<details class="${verdict}" id="clause-${id}"${open}><summary><b>${names[verdict]}</b> ${html(title)} <code>${id}</code></summary><p>${html(section)}</p>${found}${evidence.join('')}</details>`;
}

function html(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
