/**
 * The decision graph (§4, §7; RFC 9110 §13.2.2): the order of questions, and the next node or the end for each answer. `decide` walks this
 * table and docs/reference/conduct.md draws it, so neither can diverge.
 *
 * The order: the message itself; the caller; the content; the state of the resource; then preconditions, because RFC 9110 §13.2.1 ignores
 * them where the response without them would not be 2xx or 412; then the change, inside the store's transaction.
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
