/** Checks the stamped fields of a collection: declared optional strings at the top level, and values that a request has. */
import { type Stamp, stampValues } from '../model/stamp.ts';
import { type Inspection, isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';

const values: ReadonlySet<string> = new Set(stampValues);
const moments: ReadonlySet<string> = new Set<Stamp['on']>(['create', 'update']);
const members: ReadonlySet<string> = new Set<keyof Stamp>(['value', 'on']);

export function inspectStamps(inspection: Inspection): void {
  const { declaration, refuse } = inspection;
  const declared: unknown = declaration.stamp;
  if (declared === undefined) return;
  if (!isRecord(declared)) {
    refuse(`stamp must be an object, not ${kindOf(declared)}`);
    return;
  }
  for (const [name, stamp] of Object.entries(declared)) {
    inspectField(inspection, name);
    inspectStamp(`stamp.${name}`, stamp, refuse);
  }
}

function inspectField({ declaration, fields, refuse }: Inspection, name: string): void {
  const { computed = {}, tenantField, textField, schema } = declaration;
  const field = fields.get(name);
  if (field === undefined) {
    refuse(`stamp names "${name}", which is not a field${suggestion(name, fields.keys())}`);
    return;
  }
  if (field.column !== undefined) refuse(`stamp names "${name}", which the server sets anyway`);
  else if (field.path.length > 1 || (field.type !== 'string' && field.type !== 'timestamp'))
    refuse(`stamp names "${name}"; only strings at the top level can be stamped`);
  else if (Object.hasOwn(computed, name)) refuse(`stamp names "${name}", which is computed`);
  else if (name === tenantField) refuse(`stamp names "${name}", which is set as the tenantField anyway`);
  else if (name === textField) refuse(`stamp names "${name}", which is the textField`);
  else if ((schema.required ?? []).includes(name))
    refuse(
      `stamp names "${name}", which the schema requires of clients: make it Type.Optional(...), because they cannot send it`,
    );
}

function inspectStamp(place: string, stamp: unknown, refuse: (predicate: string) => void): void {
  const { value, on } = isRecord(stamp) ? stamp : { value: stamp, on: undefined };
  if (isRecord(stamp)) {
    for (const name of Object.keys(stamp))
      if (!members.has(name))
        refuse(`${place} has the member "${name}"; the members are value and on${suggestion(name, members)}`);
  }
  if (typeof value !== 'string' || !values.has(value)) {
    const meant = typeof value === 'string' ? suggestion(value, values) : '';
    refuse(`${place} must be 'principal', 'tenant' or 'time', or { value, on }${meant}`);
  }
  if (on !== undefined && !(typeof on === 'string' && moments.has(on))) {
    const meant = typeof on === 'string' ? suggestion(on, moments) : '';
    refuse(`${place}.on must be 'create' or 'update'${meant}`);
  }
}
