/** A reference as the title of what it names, linked to it. */
import type { JSX } from 'preact';
import { listOf, pathOf } from '../description.ts';
import { titleOfReference } from '../reference-titles.ts';
import { linkTo } from '../route.ts';
import { caller, readable } from '../session.ts';

type ReferenceLinkProps = {
  /** The path of the referred list. */
  readonly path: string;
  readonly id: string;
  /** Shows the id in place of the title. */
  readonly isId?: boolean;
};

export function ReferenceLink({ path, id, isId = false }: ReferenceLinkProps): JSX.Element {
  if (!readable.value.has(path)) return <UnreadableReference id={id} />;
  return (
    <a href={linkTo('member', { path, id })} title={id}>
      {isId ? id : (titleOfReference(path, id) ?? id)}
    </a>
  );
}

/** The end of an id tells apart those that were made at the same time. */
const idCharactersShown = 6;

/** A document of a list that the caller may not read has no title and no page. */
function UnreadableReference({ id }: { readonly id: string }): JSX.Element {
  const me = caller.value;
  if (id === me?.id) return <span title={id}>{me.name ?? me.email ?? 'you'}</span>;
  return (
    <span class="absent" title={id}>
      {`…${id.slice(-idCharactersShown)}`}
    </span>
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
