/**
 * The names of fields in SQL. A name is looked up as written, which is in lower case without quotes, and then without regard to case.
 * `address.city` is the nested field, unless `address` names the collection.
 */
import type { Field, Fields } from '../../model/field.ts';
import type { Reach } from '../../model/reference-path.ts';
import { unknownField } from './query-faults.ts';
import { type Finding, findCompared } from './reference-path.ts';
import type { SqlCall, SqlExpression, SqlField } from './sql-parse.ts';

export class SqlFields {
  readonly finding: Finding;
  readonly #qualifiers: ReadonlySet<string>;
  readonly #columnOf: ((call: SqlCall) => Field | undefined) | undefined;

  /**
   * @param alias the name that FROM gives the collection, if any
   * @param columnOf the column of an aggregate, where one may stand for a field; undefined after a fault
   */
  constructor(finding: Finding, alias: string | undefined, columnOf?: (call: SqlCall) => Field | undefined) {
    const table = finding.target.table.toLowerCase();
    this.finding = finding;
    this.#qualifiers = new Set([table, alias?.toLowerCase() ?? table]);
    this.#columnOf = columnOf;
  }

  isField(expression: SqlExpression): expression is SqlField {
    return expression.type === 'field' || (expression.type === 'call' && this.#columnOf !== undefined);
  }

  /** Finds a field by its name, or the column of an aggregate. @param takes begins the fault of any other expression */
  find(expression: SqlExpression, takes: string): Field | undefined {
    if (expression.type === 'call' && this.#columnOf !== undefined) return this.#columnOf(expression);
    const { faults, target } = this.finding;
    const isEverything = this.isEverything(expression);
    if (expression.type === 'field' && !isEverything) {
      const field = this.#named(expression.name);
      if (field === undefined) faults.unprocessable(unknownField(expression.name, target.fields));
      return field;
    }
    faults.unprocessable(`${takes}, not ${isEverything ? '*' : expression.words}`);
    return undefined;
  }

  /** The same in a condition, which also compares fields beyond references. */
  findCompared(expression: SqlField): Field | undefined {
    if (expression.type === 'call') return this.#columnOf?.(expression);
    return this.#named(expression.name) ?? findCompared(this.#pathOf(expression.name), this.finding);
  }

  /** The entity tag, which SELECT alone takes. */
  findTag(expression: SqlExpression): Field | undefined {
    const { tag } = this.finding.target;
    if (expression.type !== 'field' || this.#named(expression.name) !== undefined) return undefined;
    return this.#unqualified(expression.name).toLowerCase() === tag?.name ? tag : undefined;
  }

  /** True if the expression is `*` or `collection.*`. */
  isEverything(expression: SqlExpression): boolean {
    return expression.type === 'field' && this.#unqualified(expression.name) === '*';
  }

  /** The name of a field beyond references, as its collections spell it: `customerid.organisationid` is unquoted. */
  #pathOf(name: string): string {
    const [first = '', ...rest] = name.split('.');
    const isQualified = rest.length > 1 && this.#qualifiers.has(first.toLowerCase());
    const written = isQualified && this.#spelt(first) === undefined ? rest : [first, ...rest];
    const spelt: string[] = [];
    let at: Reach | undefined = this.finding.target;
    for (const part of written) {
      const known: string = at === undefined ? part : spelling(at.fields, part);
      spelt.push(known);
      at = at?.through?.(known);
    }
    return spelt.join('.');
  }

  #named(name: string): Field | undefined {
    return this.#spelt(this.#unqualified(name)) ?? this.#spelt(name);
  }

  /** The name without that of the collection before it. */
  #unqualified(name: string): string {
    const dot = name.indexOf('.');
    const isQualified = dot !== -1 && this.#qualifiers.has(name.slice(0, dot).toLowerCase());
    return isQualified ? name.slice(dot + 1) : name;
  }

  #spelt(name: string): Field | undefined {
    return this.finding.target.fields.get(spelling(this.finding.target.fields, name));
  }
}

/** The one name that differs at most in case; otherwise the name as written. */
function spelling(fields: Fields, name: string): string {
  if (fields.has(name)) return name;
  const folded = name.toLowerCase();
  const [only, other] = [...fields.keys()].filter((known) => known.toLowerCase() === folded);
  return only === undefined || other !== undefined ? name : only;
}
