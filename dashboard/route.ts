/**
 * The address of a view, in the fragment: `#/list?path=...`. The server sees one page, so the dashboard works behind any prefix without
 * rules for its paths.
 */
import { signal } from '@preact/signals';

export type Route = { readonly view: string; readonly query: URLSearchParams };

export const route = signal<Route>(read());

addEventListener('hashchange', () => {
  route.value = read();
});

function read(): Route {
  const [view = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return { view, query: new URLSearchParams(query) };
}

/** The link of a view. Undefined and empty values are left out. */
export function linkTo(view: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => (pair[1] ?? '') !== '');
  const text = new URLSearchParams(pairs).toString();
  return text === '' ? `#/${view}` : `#/${view}?${text}`;
}

export function go(link: string): void {
  location.hash = link;
}
