/**
 * The decision graph (§4, §7; RFC 9110 §13.2.2): which question is asked after which, and where each answer leads.
 * `decide` walks this very table and docs/reference/conduct.md draws it, so neither can drift from the other.
 *
 * Order, and why. What the message itself shows comes first; then who asks; then what the content is; then what stands.
 * Preconditions come after every other refusal, because RFC 9110 §13.2.1 ignores them where the
 * plain answer would not be 2xx or 412; the change itself comes last, inside the store's transaction.
 */
import type { Node, NodeName } from './node.ts';
import { contentNodes } from './nodes/content-nodes.ts';
import { messageNodes } from './nodes/message-nodes.ts';
import { preconditionNodes } from './nodes/precondition-nodes.ts';
import { principalNodes } from './nodes/principal-nodes.ts';
import { resultNodes } from './nodes/result-nodes.ts';
import { stateNodes } from './nodes/state-nodes.ts';

export const start: NodeName = 'method_known';

export const graph: Readonly<Record<NodeName, Node>> = {
  ...messageNodes,
  ...principalNodes,
  ...contentNodes,
  ...stateNodes,
  ...preconditionNodes,
  ...resultNodes,
};
