/**
 * Names and literals in SQL. The parser lower-cases unquoted names, so a name is looked up as written and then without
 * regard to case. `address.city` is the nested field, unless `address` names the collection.
 */
import type { Expr, ExprRef } from 'pgsql-ast-parser';
import type { Field, Fields } from '../../model/field.ts';
import type { Reach } from '../../model/reference-path.ts';
import type { Target } from './list-query.ts';
import { cap } from './query-faults.ts';

export class SqlFields {
  readonly fields: Fields;
  readonly #target: Target;
  readonly #qualifiers: ReadonlySet<string>;
  /** By name in lower case; null if two fields differ only in case. */
  readonly #folded = new Map<string, Field | null>();

  /** @param alias the name that FROM gives the collection, if any */
  constructor(target: Target, alias: string | undefined) {
    this.fields = target.fields;
    this.#target = target;
    this.#qualifiers = new Set([target.table.toLowerCase(), (alias ?? target.table).toLowerCase()]);
    for (const [name, field] of target.fields) {
      const folded = name.toLowerCase();
      this.#folded.set(folded, this.#folded.has(folded) ? null : field);
    }
  }

  find(ref: ExprRef): Field | undefined {
    const name = nameOf(ref);
    return this.#named(this.#unqualified(name)) ?? this.#named(name);
  }

  /** The entity tag, which SELECT alone takes. */
  findTag(ref: ExprRef): Field | undefined {
    const { tag } = this.#target;
    return this.#unqualified(nameOf(ref)).toLowerCase() === tag?.name ? tag : undefined;
  }

  /** The name without that of the collection before it. */
  #unqualified(name: string): string {
    const dot = name.indexOf('.');
    const isQualified = dot !== -1 && this.#qualifiers.has(name.slice(0, dot).toLowerCase());
    return isQualified ? name.slice(dot + 1) : name;
  }

  /** The name of a field beyond references, as its collections spell it: `customerid.organisationid` is unquoted. */
  pathOf(ref: ExprRef): string {
    const [first = '', ...rest] = nameOf(ref).split('.');
    const isQualified = rest.length > 1 && this.#qualifiers.has(first.toLowerCase());
    const written = isQualified && this.#named(first) === undefined ? rest : [first, ...rest];
    const spelt: string[] = [];
    let at: Reach | undefined = this.#target;
    for (const name of written) {
      const known: string = at === undefined ? name : spelling(at.fields, name);
      spelt.push(known);
      at = at?.through?.(known);
    }
    return spelt.join('.');
  }

  /** Tells whether the reference is `*` or `collection.*`. */
  isEverything(ref: ExprRef): boolean {
    return (
      ref.name === '*' && (ref.table === undefined || this.#qualifiers.has(ref.table.name.toLowerCase()))
    );
  }

  #named(name: string): Field | undefined {
    return this.fields.get(name) ?? this.#folded.get(name.toLowerCase()) ?? undefined;
  }
}

/** The one name that differs at most in case; otherwise the name as written. */
function spelling(fields: Fields, name: string): string {
  if (fields.has(name)) return name;
  const folded = name.toLowerCase();
  const [only, other] = [...fields.keys()].filter((known) => known.toLowerCase() === folded);
  return only === undefined || other !== undefined ? name : only;
}

/** Joins the name by dots, as written. The parser leaves doubled quotes in quoted names. */
export function nameOf({ name, table }: ExprRef): string {
  const parts = [table?.schema, table?.name, name].filter((part) => part !== undefined);
  return parts.join('.').replaceAll('""', '"');
}

export function isTable(name: string, target: Target): boolean {
  const written = name.replaceAll('""', '"');
  return written === target.table || written.toLowerCase() === target.table.toLowerCase();
}

export type Literal = { readonly value: string | number | boolean | null };

export function literalOf(expression: Expr): Literal | undefined {
  switch (expression.type) {
    case 'integer':
    case 'numeric':
    case 'string':
    case 'boolean':
      return { value: expression.value };
    case 'null':
      return { value: null };
    case 'unary': {
      if (expression.op !== '-' && expression.op !== '+') return undefined;
      const operand = literalOf(expression.operand);
      if (typeof operand?.value !== 'number') return undefined;
      return expression.op === '-' ? { value: -operand.value } : operand;
    }
    default:
      return undefined;
  }
}

export function describeConstruct(expression: Expr): string {
  switch (expression.type) {
    case 'binary':
    case 'unary':
    case 'ternary':
    case 'member':
      return `the operator ${cap(expression.op)} here`;
    case 'call':
      return `the function ${cap(expression.function.name)}`;
    case 'cast':
      return 'a cast';
    case 'parameter':
      return 'a parameter';
    case 'keyword':
      return `the keyword ${cap(expression.keyword)}`;
    case 'ref':
      return 'a field here';
    case 'list':
      return 'a row of values';
    case 'integer':
    case 'numeric':
    case 'string':
    case 'boolean':
    case 'null':
      return 'a literal here';
    default:
      return `the expression ${cap(expression.type)}`;
  }
}
