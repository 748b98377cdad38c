/**
 * The three kinds of edges, short enough that a node reads as a sentence.
 */
import type { ProblemCode } from '../problem-registry.ts';
import type { AnswerName } from './answers.ts';
import type { Edge, NodeName } from './node.ts';

export function to(node: NodeName): Edge {
  return { to: node };
}

export function answer(name: AnswerName): Edge {
  return { answer: name };
}

export function refuse(code: ProblemCode): Edge {
  return { refuse: [code] };
}
