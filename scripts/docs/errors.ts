/**
 * Renders docs/reference/errors.md from the registry in src/http/problem-registry.ts.
 *
 * Usage: npm run docs
 */
import { type ProblemCode, problems } from '../../src/http/problem-registry.ts';
import type { Retry } from '../../src/http/problems-401-to-431.ts';

export const path = 'docs/reference/errors.md';

const retries: Readonly<Record<Retry, string>> = {
  no: 'The same request gets the same response.',
  later: 'The same request may succeed after `Retry-After`, or later.',
  'after-reading': 'Read the resource again, then decide.',
  'with-credentials': 'Send a different credential.',
};

const preamble = `# Errors

Rendered from \`src/http/problem-registry.ts\` by \`npm run docs\`.

Every error response has a JSON body:

\`\`\`json
{ "error": "validation failed", "code": "validation_failed", "errors": [{ "pointer": "/price", "message": "must be at least 0" }] }
\`\`\`

- \`code\` is stable, for use by programs. A code always has the same status.
- \`error\` is for people; it may be more specific than the message below.
- \`errors\`, if present, points to each mistake in the content with a JSON Pointer (RFC 6901).
- Some codes add members: \`productCount\` is the number of products that prevent a deletion.

With \`Accept: application/problem+json\` the body also has the members of RFC 9457; \`type\` is \`/docs/errors#code\`.
`;

/** The whole page, with the final line break. */
export function render(): string {
  const codes = Object.keys(problems) as ProblemCode[];
  const overview = codes.map(
    (code) => `| ${problems[code].status} | [\`${code}\`](#${code}) | ${problems[code].message} |`,
  );
  const entries = codes.map(entryOf);
  return `${preamble}\n| status | code | message |\n|---|---|---|\n${overview.join('\n')}\n${entries.join('')}`;
}

function entryOf(code: ProblemCode): string {
  const { status, message, meaning, retry } = problems[code];
  return `\n## ${code}\n\n${status}, \`${message}\`. ${meaning} ${retries[retry]}\n`;
}
