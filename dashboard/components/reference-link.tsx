/** A reference as the title of what it names, linked to it. */
import type { JSX } from 'preact';
import { listOf, pathOf } from '../description.ts';
import { titleOfReference } from '../reference-titles.ts';
import { linkTo } from '../route.ts';

type ReferenceLinkProps = {
  /** The path of the referred list. */
  readonly path: string;
  readonly id: string;
  /** Shows the id in place of the title. */
  readonly isId?: boolean;
};

export function ReferenceLink({ path, id, isId = false }: ReferenceLinkProps): JSX.Element {
  return (
    <a href={linkTo('member', { path, id })} title={id}>
      {isId ? id : (titleOfReference(path, id) ?? id)}
    </a>
  );
}

/** Built-in collections by the prefix of their ids. */
const prefixes: Readonly<Record<string, string>> = {
  ...{ usr: 'users', key: 'keys', aud: 'audit', mail: 'mails' },
  ...{ ep: 'endpoints', dlv: 'deliveries', rec: 'received' },
};

/** The path of the list that a built-in id belongs to; undefined for other texts. */
export function listOfId(text: string): string | undefined {
  const [, prefix = ''] = /^([a-z]+)_[0-9a-z]{26}$/.exec(text) ?? [];
  const path = prefixes[prefix] === undefined ? undefined : pathOf(prefixes[prefix]);
  return path !== undefined && listOf(path)?.member !== undefined ? path : undefined;
}
