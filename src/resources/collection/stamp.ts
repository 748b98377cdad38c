/**
 * Stamped fields (§2.9; model/stamp.ts): set by each write that they are for, after the hooks of the collection and before what is
 * computed, so that rules for creation, computed fields and indexes see them. No content sets them; what a function of the application
 * gives for one stays.
 */
import type { Ask } from '../../kernel/resource.ts';
import type { Principal } from '../../model/principal.ts';
import type { Stamp } from '../../model/stamp.ts';
import { formatTimestamp } from '../../model/timestamp.ts';
import { type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import type { Served } from './served.ts';

export type Stamping = {
  /** The stored representation; undefined if the write creates the resource. */
  readonly before: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** An import: what the document has for a stamped field stays. */
  readonly isImport?: boolean;
};

/** The fields in the order of the schema, with those that this write stamps. */
export function withStamps(
  { collection, stamps, caller }: Pick<Served, 'collection' | 'stamps' | 'caller'>,
  ask: Pick<Ask, 'principal'>,
  fields: FieldsOrWritten,
  { before, at, isImport = false }: Stamping,
): FieldsOrWritten {
  if (stamps === undefined) return fields;
  const given = fields instanceof WrittenFields ? (JSON.parse(fields.text) as Fields) : fields;
  const stored = before === undefined ? undefined : (JSON.parse(before) as Fields);
  const isFunction = caller !== undefined;
  const principal = caller === undefined ? ask.principal : caller;
  const whole: Record<string, unknown> = { ...given };
  for (const [name, stamp] of stamps) {
    if (isImport && Object.hasOwn(given, name)) continue;
    const kept = stored === undefined || !Object.hasOwn(stored, name) ? undefined : stored[name];
    if (isFunction && Object.hasOwn(given, name) && given[name] !== kept) continue;
    const isDue = stored === undefined || stamp.on === 'update';
    const value = isDue ? stampValue(stamp, principal, at) : kept;
    if (value === undefined) delete whole[name];
    else whole[name] = value;
  }
  return ordered(collection.schema.properties, whole);
}

type Fields = Readonly<Record<string, unknown>>;

function stampValue({ value }: Stamp, principal: Principal | null, at: number): string | undefined {
  if (value === 'time') return formatTimestamp(at);
  if (principal === null || principal.kind === 'anonymous') return undefined;
  return value === 'principal' ? principal.id : (principal.tenant ?? undefined);
}

function ordered(properties: object, fields: Fields): Fields {
  const declared = Object.keys(properties).filter((name) => Object.hasOwn(fields, name));
  const others = Object.keys(fields).filter((name) => !Object.hasOwn(properties, name));
  return Object.fromEntries([...declared, ...others].map((name) => [name, fields[name]]));
}
