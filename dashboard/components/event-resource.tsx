/** The document of an event by its title at that time, linked to its page; its id where the API has no such page. */
import type { JSX } from 'preact';
import { listOf, pathOf } from '../description.ts';
import { titleOf } from '../reference-titles.ts';
import { linkTo } from '../route.ts';
import { isObject } from '../send.ts';
import { Value } from './value.tsx';

type EventResourceProps = { readonly type: string; readonly event: unknown };

export function EventResource({ type, event }: EventResourceProps): JSX.Element {
  const data = isObject(event) && isObject(event.data) ? event.data.object : undefined;
  const id = isObject(data) ? data.id : undefined;
  const path = pathOf(type.split('.', 1)[0] ?? '');
  const list = listOf(path);
  if (typeof id !== 'string' || list?.member === undefined) return <Value value={id} />;
  return (
    <a href={linkTo('member', { path, id })} title={id}>
      {titleOf(list, data)}
    </a>
  );
}
