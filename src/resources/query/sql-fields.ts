/**
 * Names in SQL. Unquoted ones have come through the parser in lower case, so a name is looked for as it stands and then without
 * regard to case; `address.city` is the nested field, unless `address` names the collection.
 */
import type { ExprRef } from 'pgsql-ast-parser';
import type { Field, Fields } from '../../model/field.ts';
import type { Target } from './asked.ts';

export class SqlFields {
  readonly fields: Fields;
  readonly #qualifiers: ReadonlySet<string>;
  /** By name in lower case; null where two fields differ in case only. */
  readonly #folded = new Map<string, Field | null>();

  /** @param alias the name that FROM gives the collection, if any */
  constructor(target: Target, alias: string | undefined) {
    this.fields = target.fields;
    this.#qualifiers = new Set([target.table.toLowerCase(), (alias ?? target.table).toLowerCase()]);
    for (const [name, field] of target.fields) {
      const folded = name.toLowerCase();
      this.#folded.set(folded, this.#folded.has(folded) ? null : field);
    }
  }

  find(ref: ExprRef): Field | undefined {
    const name = nameOf(ref);
    const dot = name.indexOf('.');
    const qualified = dot !== -1 && this.#qualifiers.has(name.slice(0, dot).toLowerCase());
    return (qualified ? this.#named(name.slice(dot + 1)) : undefined) ?? this.#named(name);
  }

  /** Whether the reference is `*` or `collection.*`. */
  isEverything(ref: ExprRef): boolean {
    return (
      ref.name === '*' && (ref.table === undefined || this.#qualifiers.has(ref.table.name.toLowerCase()))
    );
  }

  #named(name: string): Field | undefined {
    return this.fields.get(name) ?? this.#folded.get(name.toLowerCase()) ?? undefined;
  }
}

/** The dotted name as written. The parser leaves doubled quotes in quoted names. */
export function nameOf({ name, table }: ExprRef): string {
  const parts = [table?.schema, table?.name, name].filter((part) => part !== undefined);
  return parts.join('.').replaceAll('""', '"');
}

/** Whether a name in FROM is the target. */
export function isTable(name: string, target: Target): boolean {
  const written = name.replaceAll('""', '"');
  return written === target.table || written.toLowerCase() === target.table.toLowerCase();
}
