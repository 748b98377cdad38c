/** A reference as the title of what it names, linked to it. */
import type { JSX } from 'preact';
import { titleOfReference } from '../reference-titles.ts';
import { linkTo } from '../route.ts';

/** @param path of the referred list */
export function ReferenceLink({ path, id }: { readonly path: string; readonly id: string }): JSX.Element {
  return (
    <a href={linkTo('member', { path, id })} title={id}>
      {titleOfReference(path, id) ?? id}
    </a>
  );
}
