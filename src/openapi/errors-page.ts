/** The page at `/docs/errors`: each code has an anchor, to which `type` of a problem points (RFC 9457 §3.1.1). */
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import type { Retry } from '../http/problems/problem-entry.ts';
import { bar, escapeHtml } from './docs-page.ts';
import { reasonPhrases } from './refusals.ts';

const advice: Readonly<Record<Retry, string>> = {
  no: 'The same request gets the same response.',
  later: 'The same request may succeed later; wait for Retry-After if the response has it.',
  'after-reading': 'Read the resource again, then decide.',
  'with-credentials': 'Send a different credential.',
};

/** @param stylePath path of the stylesheet */
export function errorsPage(title: string, stylePath: string): string {
  const byStatus = Map.groupBy(Object.keys(problems) as ProblemCode[], (code) => problems[code].status);
  const sections = [...byStatus]
    .sort(([one], [other]) => one - other)
    .map(
      ([status, codes]) =>
        `<section>\n<h2>${status} ${reasonPhrases[status] ?? ''}</h2>\n${codes.map(entry).join('\n')}\n</section>`,
    );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Errors: ${escapeHtml(title)} API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${stylePath}">
</head>
<body>
${bar(title, 'errors')}
<main>
<h1>Errors</h1>
<p>Every error response has a JSON body with <code>error</code>, a message for people, and <code>code</code>, which is stable and for programs.
With <code>Accept: application/problem+json</code> it also has the members of RFC&nbsp;9457. If the content is invalid, <code>errors</code> points to each invalid member.</p>
${sections.join('\n')}
</main>
</body>
</html>
`;
}

function entry(code: ProblemCode): string {
  const { message, meaning, retry } = problems[code];
  return `<article id="${code}">
<h3><a href="#${code}"><code>${code}</code></a></h3>
<p>${escapeHtml(meaning)}</p>
<p class="quiet">“${escapeHtml(message)}”. ${advice[retry]}</p>
</article>`;
}
