/** The members of a document as a table of names and values; references are links, lists and objects are shown by their parts. */
import type { JSX } from 'preact';
import { type Listed, resolve, type Schema } from '../description.ts';
import { displayOf, groupsOf, inWords, labelOf } from '../presentation.ts';
import { isObject } from '../send.ts';
import { FileMember } from './file-member.tsx';
import { MemberValue } from './member-value.tsx';
import { Value } from './value.tsx';

type MembersProps = {
  readonly list: Listed;
  /** The id of the document, as its path has it. */
  readonly id: string;
  readonly document: Readonly<Record<string, unknown>>;
  /** Reads the document again. */
  readonly onChange: () => Promise<void>;
};

/** The members that every document has are of less interest than its own. */
const made: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt', 'deletedAt']);

export function Members({ list, id, document, onChange }: MembersProps): JSX.Element {
  const { schema, member } = list;
  const files = member?.files;
  // Where a document may get a file, it has a place for it.
  const all = [...new Set([...Object.keys(document), ...(files?.keys() ?? [])])];
  const names = all.toSorted((one, other) => Number(made.has(one)) - Number(made.has(other)));
  return (
    <div class="groups">
      {groupsOf(schema, names).map(({ heading, members }) => (
        <section key={heading} aria-label={heading || 'Members'}>
          {heading === '' ? null : <h2>{heading}</h2>}
          <dl class="members">
            {members.map((name) => {
              const [field, value] = [files?.get(name), document[name]];
              return (
                <div key={name}>
                  <dt title={name}>{labelOf(schema, name)}</dt>
                  <dd>
                    {field === undefined ? (
                      <Shown {...{ list, name, value, document }} />
                    ) : (
                      <FileMember {...{ list, id, field, value, onChange }} />
                    )}
                  </dd>
                </div>
              );
            })}
          </dl>
        </section>
      ))}
    </div>
  );
}

type ShownProps = {
  readonly list: Listed;
  readonly name: string;
  readonly value: unknown;
  readonly document: Readonly<Record<string, unknown>>;
};

function Shown({ list, name, value, document }: ShownProps): JSX.Element {
  const isPart = (isObject(value) && name !== 'actor') || Array.isArray(value);
  if (isPart) return <PartValue value={value} schema={resolve(list.schema.properties?.[name])} />;
  if (displayOf(list.schema, name).as === 'long' && typeof value === 'string')
    return <p class="long">{value}</p>;
  return <MemberValue {...{ list, name, value, document }} />;
}

/** Deeper objects are JSON: nested lists of names and values are harder to read. */
const depthMax = 2;

type PartValueProps = { readonly value: unknown; readonly schema: Schema; readonly depth?: number };

/** A list or an object by its parts. */
function PartValue({ value, schema, depth = 0 }: PartValueProps): JSX.Element {
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
            <dt title={name}>
              {schema.properties?.[name] === undefined ? inWords(name) : labelOf(schema, name)}
            </dt>
            <dd>
              <PartValue value={each} schema={resolve(schema.properties?.[name])} depth={depth + 1} />
            </dd>
          </div>
        ))}
      </dl>
    );
  if (isObject(value) || Array.isArray(value)) return <pre>{JSON.stringify(value, undefined, 2)}</pre>;
  return <Value value={value} />;
}
