/** Who made a change, as events, versions and the audit trail name it. */
import type { JSX } from 'preact';
import type { Version } from '../api-types.ts';
import { listOf, pathOf } from '../description.ts';
import { ReferenceLink } from './reference-link.tsx';

export type ActorValue = NonNullable<Version['actor']>;

const names: Readonly<Record<string, string>> = {
  'administrator-key': 'the administrator key',
  anonymous: 'an anonymous caller',
};

export function Actor({ actor }: { readonly actor: ActorValue | undefined }): JSX.Element | null {
  if (actor === undefined) return null;
  const { kind, id, keyId } = actor;
  const isLinked = id?.startsWith('usr_') === true && listOf(pathOf('users')) !== undefined;
  return (
    <span>
      by{' '}
      {isLinked ? <ReferenceLink path={pathOf('users')} id={id} /> : (names[kind] ?? `${kind} ${id ?? ''}`)}
      {keyId === undefined ? null : <span class="quiet"> with key {keyId}</span>}
    </span>
  );
}
