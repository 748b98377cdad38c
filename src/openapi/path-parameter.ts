/** A part of a path that a request fills. */
import type { Item } from './item.ts';

export function pathParameter(name: string, description: string): Item {
  return { name, in: 'path', required: true, description, schema: { type: 'string' } };
}
