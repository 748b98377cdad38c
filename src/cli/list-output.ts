/** A list on stdout: a table for people, one JSON array for programs. That there is more is told on stderr. */
import type { Listed } from './server-client.ts';
import type { Terminal } from './terminal.ts';

export function tellList<T>(
  terminal: Terminal,
  { items, more }: Listed<T>,
  json: boolean,
  forPeople: { readonly text: (items: readonly T[]) => string; readonly none: string },
): void {
  if (json) terminal.out(JSON.stringify(items, undefined, 2));
  else terminal.out(items.length === 0 ? forPeople.none : forPeople.text(items));
  if (more) terminal.err(`comity: there are more than these ${items.length}; --limit shows more of them`);
}
