/**
 * Walks the decision graph: facts in, an end or a want out, and the trace of nodes between (design §2).
 * Pure: the caller gathers what is wanted, writes it into the facts and walks on from where it stopped.
 */
import type { ProblemCode } from '../problem-registry.ts';
import type { AnswerName } from './answers.ts';
import type { Facts, Want } from './facts.ts';
import { graph, start } from './graph.ts';
import type { NodeName } from './node.ts';

export type Step =
  | { readonly kind: 'answer'; readonly answer: AnswerName }
  | { readonly kind: 'refuse'; readonly code: ProblemCode }
  /** Gather this, then `decide` again from `node`. */
  | { readonly kind: 'want'; readonly want: Want; readonly node: NodeName };

/** A walk longer than this has looped through `superseded` more often than any caller allows. */
const nodesMax = 10_000;

/**
 * @param trace receives the name of each node that was answered, in order; pass the same array when walking on.
 * @throws {Error} when a fact stays unknown at a node without a want: a defect of the caller.
 */
export function decide(facts: Facts, trace: NodeName[], from: NodeName = start): Step {
  let name = from;
  while (trace.length < nodesMax) {
    const node = graph[name];
    const said = node.ask(facts);
    if (said === undefined) {
      if (node.want === undefined) throw new Error(`the walk reached ${name} without its fact`);
      return { kind: 'want', want: node.want, node: name };
    }
    trace.push(name);
    const edge = said ? node.yes : node.no;
    if ('to' in edge) {
      name = edge.to;
      continue;
    }
    if ('answer' in edge) return { kind: 'answer', answer: edge.answer };
    const code = edge.pick === undefined ? edge.refuse[0] : edge.pick(facts);
    if (code === undefined || code === null)
      throw new Error(`the walk was refused at ${name} without a code`);
    return { kind: 'refuse', code };
  }
  throw new Error('the walk does not end');
}
