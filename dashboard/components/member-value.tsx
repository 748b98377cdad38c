/** The value of a member as its declaration says that people see it: a reference by title, a state in its colour, money as money. */
import type { JSX } from 'preact';
import { type Listed, resolve } from '../description.ts';
import { dateText, displayedText, displayOf } from '../presentation.ts';
import { titleOfReference } from '../reference-titles.ts';
import { isObject } from '../send.ts';
import { Actor, type ActorValue } from './actor.tsx';
import { choicesOf } from './form-values.ts';
import { listOfId, ReferenceLink } from './reference-link.tsx';
import { Badge, Time, Value } from './value.tsx';

type MemberValueProps = {
  readonly list: Listed;
  readonly name: string;
  readonly value: unknown;
  /** The document that has the value. */
  readonly document?: Readonly<Record<string, unknown>>;
  /** In a cell of a table: times without seconds, long texts cut. */
  readonly isCell?: boolean;
  /** Within a link: has none itself. */
  readonly isText?: boolean;
};

export function MemberValue(props: MemberValueProps): JSX.Element {
  const { list, name, value, document, isCell = false, isText = false } = props;
  const schema = resolve(list.schema.properties?.[name]);
  const display = displayOf(list.schema, name);
  const text = displayedText(value, display, document);
  if (text !== undefined) return <span class="number">{text}</span>;
  if (typeof value === 'boolean' && display.as === 'state')
    return <Badge text={value ? 'yes' : 'no'} display={display} />;
  // Seconds since the epoch (§6.2).
  if (name === 'created' && typeof value === 'number')
    return <Time value={new Date(value * 1000).toISOString()} />;
  if (name === 'actor' && isObject(value)) return <Actor actor={value as unknown as ActorValue} />;
  if (typeof value !== 'string') return <Value value={value} />;
  const target = list.references.get(name) ?? (name === 'id' ? undefined : listOfId(value));
  if (target !== undefined)
    return isText ? (
      <span>{titleOfReference(target, value) ?? value}</span>
    ) : (
      <ReferenceLink path={target} id={value} />
    );
  if (display.as === 'state' || choicesOf(schema).length > 0) return <Badge text={value} display={display} />;
  if (schema.format === 'date-time') return <Time value={value} isShort={isCell} />;
  if (schema.format === 'date') return <time dateTime={value}>{dateText(value)}</time>;
  if (display.as === 'link' && !isText && /^https?:/i.test(value))
    return (
      <a href={value} rel="noreferrer" target="_blank">
        {value.replace(/^https?:\/\//i, '')}
      </a>
    );
  return isCell || value.length <= 100 ? <Value value={value} /> : <p class="long">{value}</p>;
}
