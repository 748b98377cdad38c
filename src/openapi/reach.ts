/**
 * Every end of the decision graph that an operation can come to. The document's statuses are read off the very table that
 * answers requests, so a status can neither be forgotten here nor be promised and never sent.
 */
import type { AnswerName } from '../http/conduct/answers.ts';
import { graph, start } from '../http/conduct/graph.ts';
import type { Edge, NodeName } from '../http/conduct/node.ts';
import type { ProblemCode } from '../http/problem-registry.ts';

export type Ends = {
  readonly answers: ReadonlySet<AnswerName>;
  readonly refusals: ReadonlySet<ProblemCode>;
};

/**
 * @param settled questions whose answer is the same for every request of the operation; all others may go either way
 * @param raised of a node that picks among several codes: whether the operation can raise this one there
 */
export function reach(
  settled: ReadonlyMap<NodeName, boolean>,
  raised: (node: NodeName, code: ProblemCode) => boolean,
): Ends {
  const answers = new Set<AnswerName>();
  const refusals = new Set<ProblemCode>();
  const seen = new Set<NodeName>();
  const waiting: NodeName[] = [start];
  const follow = (from: NodeName, edge: Edge) => {
    if ('to' in edge) waiting.push(edge.to);
    else if ('answer' in edge) answers.add(edge.answer);
    else
      for (const code of edge.refuse) if (edge.pick === undefined || raised(from, code)) refusals.add(code);
  };
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const said = settled.get(name);
    if (said !== false) follow(name, graph[name].yes);
    if (said !== true) follow(name, graph[name].no);
  }
  return { answers, refusals };
}
