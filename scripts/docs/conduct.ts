/**
 * Draws the decision graph from the table that the code runs: docs/reference/conduct.md.
 */
import { answers } from '../../src/http/conduct/answers.ts';
import { graph, start } from '../../src/http/conduct/graph.ts';
import type { Edge } from '../../src/http/conduct/node.ts';
import { problemStatus } from '../../src/http/problem.ts';

export const path = 'docs/reference/conduct.md';

export function render(): string {
  return [
    '# The decision graph',
    '',
    'Every request to a resource walks this graph from the top. Each node asks one question; its answer leads to',
    'another node, to a success, or to a refusal with its code. The table below is generated from the one that the code',
    'runs (`src/http/conduct/graph.ts`). With `COMITY_DEVELOPMENT=on` every response lists the nodes that it passed in',
    '`Comity-Trace`.',
    '',
    'A node marked *wants* pauses the walk until a fact is fetched: the principal, the content, the stored state. A request',
    'that is refused earlier does not pay for it.',
    '',
    '```mermaid',
    ...drawing(),
    '```',
    '',
    '| node | question | wants | yes | no | section |',
    '|---|---|---|---|---|---|',
    ...Object.entries(graph).map(
      ([name, node]) =>
        `| \`${name}\` | ${node.question} | ${node.want ?? ''} | ${describe(node.yes)} | ${describe(node.no)} | ${node.section} |`,
    ),
    '',
    '## Answers',
    '',
    '| answer | status | meaning | section |',
    '|---|---|---|---|',
    ...Object.entries(answers).map(
      ([name, { status, meaning, section }]) => `| \`${name}\` | ${status} | ${meaning} | ${section} |`,
    ),
    '',
    'Refusals are listed in [errors.md](errors.md).',
    '',
  ].join('\n');
}

function drawing(): string[] {
  const lines = ['flowchart TD', `  begin(( )) --> ${start}`];
  for (const [name, node] of Object.entries(graph)) {
    lines.push(`  ${name}{"${node.question.replaceAll('"', "'")}"}`);
    lines.push(`  ${name} -->|yes| ${box(name, 'yes', node.yes)}`);
    lines.push(`  ${name} -->|no| ${box(name, 'no', node.no)}`);
  }
  return lines;
}

function box(name: string, side: string, edge: Edge): string {
  if ('to' in edge) return edge.to;
  if ('answer' in edge) return `${edge.answer}(["${answers[edge.answer].status} ${edge.answer}"])`;
  const [code] = edge.refuse;
  const label =
    edge.refuse.length === 1 && code !== undefined ? `${problemStatus(code)} ${code}` : statuses(edge.refuse);
  return `${name}_${side}["${label}"]`;
}

function statuses(codes: readonly Parameters<typeof problemStatus>[0][]): string {
  return [...new Set(codes.map(problemStatus))].sort((a, b) => a - b).join(', ');
}

function describe(edge: Edge): string {
  if ('to' in edge) return `\`${edge.to}\``;
  if ('answer' in edge) return `**${answers[edge.answer].status}** \`${edge.answer}\``;
  return edge.refuse.map((code) => `**${problemStatus(code)}** \`${code}\``).join(', ');
}
