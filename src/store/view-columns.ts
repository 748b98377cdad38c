/**
 * The view of a collection for SQL tools: its name, and a column for each member at the top level. Names are in lower case with underscores,
 * which need no quotes in SQL. No collection has an underscore in its name, so that no view has the name of a table.
 */
import type { Field } from '../model/field.ts';
import type { Table } from './store.ts';

export type ViewColumn = { readonly name: string; readonly field: Field };

/** Columns that every view has, before those of the members. */
export const viewHead = ['id', 'owner', 'created_at', 'updated_at'] as const;

export function viewName({ name }: Table): string {
  return `view_${name.replaceAll('-', '_')}`;
}

/** Names that are equal apart from case, which SQLite does not distinguish, get numbers. */
export function viewColumns({ fields }: Table): readonly ViewColumn[] {
  const taken = new Set<string>(viewHead);
  const columns: ViewColumn[] = [];
  for (const field of fields) {
    if (field.column !== undefined || field.path.length !== 1) continue;
    const plain = field.name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
    let name = plain;
    for (let number = 2; taken.has(name); number += 1) name = `${plain}_${number}`;
    taken.add(name);
    columns.push({ name, field });
  }
  return columns;
}
