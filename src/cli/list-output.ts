/** A list on stdout: a table for people, one JSON array for programs. That there is more is told on stderr. */
import type { Listed } from './server-client.ts';

export function tellList<T>(
  { items, more }: Listed<T>,
  json: boolean,
  forPeople: { readonly text: (items: readonly T[]) => string; readonly none: string },
): void {
  if (json) console.log(JSON.stringify(items, undefined, 2));
  else console.log(items.length === 0 ? forPeople.none : forPeople.text(items));
  if (more) console.error(`comity: there are more than these ${items.length}; --limit shows more of them`);
}
