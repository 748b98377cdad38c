/** The members of a document as a table of names and values; references are links, lists and objects are shown by their parts. */
import type { JSX } from 'preact';
import type { Listed } from '../description.ts';
import { isObject } from '../send.ts';
import { listOfId, ReferenceLink } from './reference-link.tsx';
import { Value } from './value.tsx';

type MembersProps = { readonly list: Listed; readonly document: Readonly<Record<string, unknown>> };

export function Members({ list, document }: MembersProps): JSX.Element {
  return (
    <dl class="members">
      {Object.entries(document).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <MemberValue value={value} target={list.references.get(name)} isOwn={name === 'id'} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Deeper objects are JSON: nested lists of names and values are harder to read. */
const depthMax = 2;

type MemberValueProps = {
  readonly value: unknown;
  readonly target?: string | undefined;
  readonly depth?: number;
  /** The id of the document itself. */
  readonly isOwn?: boolean;
};

function MemberValue({ value, target, depth = 0, isOwn = false }: MemberValueProps): JSX.Element {
  if (typeof value === 'string') {
    const path = target ?? (isOwn ? undefined : listOfId(value));
    if (path !== undefined) return <ReferenceLink path={path} id={value} />;
  }
  if (Array.isArray(value)) {
    if (value.length === 0) return <span class="absent">none</span>;
    if (value.every((each) => typeof each !== 'object' || each === null))
      return (
        <ul class="items">
          {value.map((each, index) => (
            <li key={`${index} ${each}`}>
              <Value value={each} />
            </li>
          ))}
        </ul>
      );
  }
  if (isObject(value) && depth < depthMax)
    return (
      <dl class="nested">
        {Object.entries(value).map(([name, each]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <MemberValue value={each} depth={depth + 1} />
            </dd>
          </div>
        ))}
      </dl>
    );
  if (isObject(value) || Array.isArray(value)) return <pre>{JSON.stringify(value, undefined, 2)}</pre>;
  if (typeof value === 'string') return <LongText text={value} />;
  return <Value value={value} />;
}

/** A text is shown whole on the page of its document. */
function LongText({ text }: { readonly text: string }): JSX.Element {
  return text.length > 100 ? <p class="long">{text}</p> : <Value value={text} />;
}
