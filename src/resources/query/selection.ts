/**
 * The query of a single resource. `fields=a,b`: the members that a representation shows; `*`: all. A selection keeps the order of the
 * collection's fields, so the order in the request makes no difference. The owner and the entity tag, which representations do not contain,
 * come last.
 */
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { Field } from '../../model/field.ts';
import type { Expansion } from '../relations/relations.ts';
import { compileExpansion, type ExpansionLimits, namesIn } from './expansion.ts';
import type { Asked, Target } from './list-query.ts';
import { FaultList, type Place, quote, unknownField } from './query-faults.ts';

/** What is selected of a representation. */
export type Selected = Pick<Asked, 'select' | 'owner' | 'tag'>;

export type Selection =
  | (Selected & {
      readonly ok: true;
      readonly expansion: Expansion | undefined;
    })
  | { readonly ok: false; readonly message: string };

const faultsMax = 1;

const parameters = ['fields', 'expand', 'counts'] as const;

/** Reads the query of a single resource: `fields`, `expand` and `counts`, besides `api_key`. @param query undecoded, without `?` */
export function readSelection(
  query: string,
  target: Pick<Target, 'fields' | 'relations' | 'tag'>,
  limits: ExpansionLimits,
): Selection {
  const pairs = parseQueryString(query);
  if (pairs === undefined) return { ok: false, message: 'malformed query string' };
  const given = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (name === 'api_key') continue;
    if (!parameters.some((each) => each === name)) {
      return { ok: false, message: `unknown parameter ${quote(name)}; parameters: ${parameters.join(', ')}` };
    }
    if (given.has(name)) return { ok: false, message: `${name} is given more than once` };
    given.set(name, value);
  }
  const faults = new FaultList(faultsMax);
  const list = given.get('fields');
  const selected =
    list === undefined
      ? { select: undefined }
      : selectFields(list.split(','), target, { faults, place: undefined });
  const expansion = compileExpansion(
    { expand: namesIn(given.get('expand'), undefined), counts: namesIn(given.get('counts'), undefined) },
    target,
    { limits, faults },
  );
  const [fault] = faults.faults;
  return fault === undefined ? { ok: true, ...selected, expansion } : { ok: false, message: fault.message };
}

export type Selectable = Pick<Target, 'fields' | 'tag'>;

/** Finds the named fields, each once, in the order of the collection; `*` is all of them. */
export function selectFields(
  names: readonly string[],
  target: Selectable,
  into: { readonly faults: FaultList; readonly place: Place },
): Selected {
  const { fields, tag } = target;
  const chosen = new Set<Field>();
  let everything = false;
  for (const name of names) {
    const field = fields.get(name);
    if (field !== undefined) chosen.add(field);
    else if (name === '*') everything = true;
    else if (name === tag?.name) chosen.add(tag);
    else
      into.faults.unprocessable(
        name === '' ? 'fields has an empty field name' : unknownField(name, fields),
        into.place,
      );
  }
  return selectedOf(chosen, everything, target);
}

/** @param everything the representation is selected as a whole */
export function selectedOf(
  chosen: ReadonlySet<Field>,
  everything: boolean,
  { fields, tag }: Selectable,
): Selected {
  const select: Field[] = [];
  let owner: Field | undefined;
  for (const field of fields.values()) {
    if (!chosen.has(field)) continue;
    if (field.column === 'owner') owner = field;
    else select.push(field);
  }
  return {
    select: everything ? undefined : select,
    ...(owner === undefined ? {} : { owner }),
    ...(tag !== undefined && chosen.has(tag) ? { tag } : {}),
  };
}
