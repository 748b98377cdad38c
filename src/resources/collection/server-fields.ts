/**
 * Fields that the server sets, after the hooks of the collection, and that are stored with the document: stamped fields (§2.9;
 * model/collection.ts) and then computed ones, so that rules for creation, computed fields and indexes see the stamps. No
 * content sets them; what a function of the application gives for a stamped field stays. Ids are given in write-operations.ts.
 */
import type { Ask } from '../../kernel/resource.ts';
import type { Stamp } from '../../model/collection.ts';
import type { Members } from '../../model/json-value.ts';
import type { Principal } from '../../model/principal.ts';
import { formatTimestamp } from '../../model/timestamp.ts';
import { callAs } from '../../observe/running-function.ts';
import { withInstants } from '../document/propose.ts';
import { type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import type { Served } from './served-collection.ts';

type Stamping = {
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

/** The fields with those that are computed from them. A value that does not fit its schema is a fault of the application. */
export function withComputed(
  { collection, validator }: Pick<Served, 'collection' | 'validator'>,
  fields: FieldsOrWritten,
): FieldsOrWritten {
  const { computed, name: of } = collection;
  if (computed === undefined) return fields;
  const given = fields instanceof WrittenFields ? (JSON.parse(fields.text) as object) : fields;
  const whole: Record<string, unknown> = { ...given };
  for (const name of computed.keys()) delete whole[name];
  const own = { ...whole };
  for (const [name, compute] of computed) {
    try {
      const by = { named: `the computed field ${name} of ${of}` };
      const value: unknown = callAs(by, compute, { ...own } as never);
      if (value !== undefined) whole[name] = value;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`the computed field ${name} of ${of} failed: ${message}`, { cause: error });
    }
  }
  const kept = withInstants(validator, whole as Members);
  const { missing, invalid } = validator.check(kept);
  const [fault] = [...missing, ...invalid];
  if (fault !== undefined)
    throw new Error(`a computed field of ${of} does not fit its schema: ${fault.pointer} ${fault.message}`);
  return kept;
}
