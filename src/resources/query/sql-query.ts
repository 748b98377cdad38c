/**
 * Compiles SQL content of QUERY (§4.9): one SELECT over the fields of the target collection, which is parsed but never
 * run: `SELECT *|field, ... FROM collection [alias] [WHERE ...] [ORDER BY field [ASC|DESC], ...] [LIMIT n] [OFFSET n]`,
 * and aggregates. Malformed (400) is what the grammar does not take, also where PostgreSQL would (ESCAPE, IS UNKNOWN);
 * every other construct is unprocessable (422) and named. Null sorts before every value, as in the other query syntaxes,
 * so NULLS FIRST goes with ASC and NULLS LAST with DESC.
 */
import type { Field } from '../../model/field.ts';
import { always, type Sort } from '../../model/filter.ts';
import { type AggregateFunction, AggregationReading, aggregateFunctions } from './aggregation.ts';
import type { Finding } from './conditions.ts';
import type { Asked, AskedPosition, Compiled, Fault, QueryLimits, Target } from './list-query.ts';
import { FaultList, quote, show } from './query-faults.ts';
import { type Selected, selectedOf } from './selection.ts';
import { addKey, checkRange, totalOrder } from './sort-keys.ts';
import { compileSqlCondition, SqlFields } from './sql-condition.ts';
import { parseSql, type SqlCall, type SqlExpression, type SqlSelect } from './sql-parse.ts';
import { scanSql, sqlForm } from './sql-scan.ts';

export function compileSql(text: string, target: Target, limits: QueryLimits): Compiled {
  const tokens = scanSql(text, limits);
  if ('message' in tokens) return { ok: false, faults: [tokens] };
  const select = parseSql(tokens);
  if ('failed' in select) return refusal('malformed', placed(select.failed.at, text));
  const complaint = complaintOf(select.from, target);
  // In another table the names mean something else.
  if (complaint !== undefined) return refusal('unprocessable', complaint);
  const faults = new FaultList(limits.validationErrorsMax);
  return new Statement(select, { target, limits, faults }).compile();
}

function refusal(kind: Fault['kind'], message: string): Compiled {
  return { ok: false, faults: [{ kind, message }] };
}

function placed(at: number, text: string): string {
  const line = text.slice(0, at).split('\n').length;
  const place = `does not parse at line ${line}, column ${at - text.lastIndexOf('\n', at - 1)}`;
  return `the query ${at < text.length ? place : 'ends too early'}; ${sqlForm}`;
}

function complaintOf([from, ...others]: SqlSelect['from'], { table }: Target): string | undefined {
  if (from === undefined) return `FROM ${table} is missing`;
  if (others.length > 0) return `a join is not allowed; FROM takes only ${table}`;
  const { expression } = from;
  if (expression.type !== 'field') return `a function is not allowed; FROM takes only ${table}`;
  if (expression.name.toLowerCase() === table.toLowerCase()) return undefined;
  return `unknown table ${quote(expression.name)}; this resource is ${table}`;
}

type Measured = { readonly of: AggregateFunction; readonly field: Field | undefined };

class Statement {
  readonly #select: SqlSelect;
  readonly #finding: Finding;
  readonly #fields: SqlFields;

  constructor(select: SqlSelect, finding: Finding) {
    this.#select = select;
    this.#finding = finding;
    this.#fields = new SqlFields(finding, select.from[0]?.alias);
  }

  compile(): Compiled {
    const { where, columns, groupBy } = this.#select;
    const filter = where === undefined ? always : compileSqlCondition(where, this.#fields);
    const page = { limit: this.#limit(), position: this.#position(), page: undefined, source: undefined };
    const isAggregate = groupBy.length > 0 || columns.some(({ expression }) => expression.type === 'call');
    const asked = { filter, ...page, ...(isAggregate ? this.#groups() : this.#rows()) };
    const { faults } = this.#finding;
    return faults.isEmpty ? { ok: true, asked } : { ok: false, faults: faults.faults };
  }

  #limit(): number {
    const { listLimitMax, listLimitDefault } = this.#finding.limits;
    const { limit } = this.#select;
    if (limit === undefined) return listLimitDefault;
    const into = { shown: shown(limit), faults: this.#finding.faults, place: undefined };
    return checkRange('LIMIT', numberIn(limit), listLimitMax, into) ?? listLimitDefault;
  }

  #position(): AskedPosition {
    const { offset } = this.#select;
    const number = offset === undefined ? 0 : (numberIn(offset) ?? -1);
    if (Number.isSafeInteger(number) && number > 0) return { from: 'offset', offset: number };
    if (offset !== undefined && number !== 0)
      this.#fault(`OFFSET must be an integer of at least 0, not ${shown(offset)}`);
    return { from: 'start' };
  }

  #rows(): Selected & Pick<Asked, 'sort'> {
    const { target } = this.#finding;
    const fields = this.#fields;
    const { columns } = this.#select;
    const keys = this.#order(fields, 'ORDER BY takes fields');
    const chosen = new Set<Field>();
    let everything = false;
    for (const { expression, alias } of columns) {
      if (alias !== undefined) this.#fault(`a field cannot be renamed to ${quote(alias)}`);
      if (fields.isEverything(expression)) everything = true;
      else {
        const field = fields.findTag(expression) ?? fields.find(expression, 'SELECT takes * or fields');
        if (field !== undefined) chosen.add(field);
      }
    }
    if (columns.length === 0) this.#fault('SELECT takes * or fields');
    return { sort: totalOrder(keys, target.fields, false), ...selectedOf(chosen, everything, target) };
  }

  /**
   * Reads aggregates (§4.18): `SELECT field, count(*), avg(price) AS mean FROM ... GROUP BY field HAVING count(*) > 2
   * ORDER BY mean DESC`. Functions are count, sum, avg, min and max of one field, and `count(*)`. A result without AS is
   * named as in JSON (`avg_price`). HAVING and ORDER BY may use a result by its name or by its expression, selected or not.
   */
  #groups(): Pick<Asked, 'select' | 'sort' | 'aggregation'> {
    const { target, limits, faults } = this.#finding;
    const { columns, groupBy, having } = this.#select;
    const fields = this.#fields;
    const reading = new AggregationReading(target, limits, faults);
    for (const each of groupBy) {
      const field = isPeriod(each)
        ? this.#periodOf(each, reading)
        : fields.find(each, 'GROUP BY takes fields');
      if (field !== undefined) reading.group(field, undefined);
    }
    const resultOf = (call: SqlCall, named: { readonly name?: string; readonly order?: number } = {}) => {
      if (isPeriod(call)) return this.#groupOf(call, reading)?.column;
      const measure = this.#measureOf(call);
      return measure && reading.result(measure.of, measure.field, { ...named, place: undefined });
    };
    for (const [order, { expression, alias }] of columns.entries()) {
      if (isPeriod(expression)) {
        const group = this.#groupOf(expression, reading);
        if (group !== undefined) reading.show(group.column, order, alias ?? group.name, undefined);
        continue;
      }
      if (expression.type === 'call') {
        resultOf(expression, { ...(alias === undefined ? {} : { name: alias }), order });
        continue;
      }
      const field = fields.find(expression, 'SELECT takes fields of GROUP BY and aggregates');
      if (field === undefined) continue;
      const column = reading.groupColumn(field);
      if (column !== undefined) reading.show(column, order, alias, undefined);
      else this.#fault(`${quote(field.name)} must be in GROUP BY or in an aggregate`);
    }
    const results = { ...target, fields: reading.named, through: undefined };
    const named = new SqlFields({ ...this.#finding, target: results }, undefined, resultOf);
    const keys = this.#order(named, 'ORDER BY takes results and fields of GROUP BY');
    const filter = having === undefined ? always : compileSqlCondition(having, named);
    return { select: undefined, sort: reading.totalOrder(keys), aggregation: reading.finish(filter) };
  }

  /** `date_trunc('month', createdAt, 'Europe/Berlin')`, whose zone is UTC if none is given. */
  #periodOf(
    { items: [unit, time, zone, ...others] }: SqlCall,
    reading: AggregationReading,
  ): Field | undefined {
    if (unit?.type !== 'literal' || time?.type !== 'field' || others.length > 0) {
      this.#fault(`write date_trunc as date_trunc('month', field, 'Europe/Berlin')`);
      return undefined;
    }
    const field = this.#fields.find(time, 'date_trunc takes a field');
    const timeZone = zone === undefined ? 'UTC' : zone.type === 'literal' ? zone.value : undefined;
    return field && reading.periodField(field.name, unit.value, timeZone, undefined);
  }

  /** The column of a group by a period, and the name of its time. */
  #groupOf(call: SqlCall, reading: AggregationReading): { column: Field; name: string } | undefined {
    const field = this.#periodOf(call, reading);
    const column = field && reading.groupColumn(field);
    if (field === undefined || column !== undefined) return field && column && { column, name: field.name };
    this.#fault(`${call.words} must be in GROUP BY as it is here`);
    return undefined;
  }

  #measureOf({ words, name, items: [argument, ...others] }: SqlCall): Measured | undefined {
    const fields = this.#fields;
    const of = aggregateFunctions.find((each) => each === name);
    if (of === undefined) {
      this.#fault(`${words} is not allowed in a query; aggregates: ${aggregateFunctions.join(', ')}`);
    } else if (argument === undefined || others.length > 0) {
      this.#fault(`write ${of} as ${of}(field)${of === 'count' ? ' or count(*)' : ''}`);
    } else if (of === 'count' && argument.type === 'field' && argument.name === '*')
      return { of, field: undefined };
    else {
      const field = fields.find(argument, `${of} takes a field`);
      if (field !== undefined) return { of, field };
    }
    return undefined;
  }

  #order(fields: SqlFields, takes: string): readonly Sort[] {
    const keys: Sort[] = [];
    const { faults, target } = fields.finding;
    for (const { by, isDescending, isNullLast = isDescending } of this.#select.orderBy) {
      if (isNullLast !== isDescending)
        this.#fault('null sorts before every value: use NULLS FIRST with ASC and NULLS LAST with DESC');
      const field = fields.find(by, takes);
      const into = { keys, fields: target.fields, faults, place: undefined };
      if (field !== undefined) addKey({ field, direction: isDescending ? 'desc' : 'asc' }, into);
    }
    return keys;
  }

  #fault(message: string): void {
    this.#finding.faults.unprocessable(message);
  }
}

function isPeriod(expression: SqlExpression): expression is SqlCall & { readonly name: 'date_trunc' } {
  return expression.type === 'call' && expression.name === 'date_trunc';
}

function numberIn(expression: SqlExpression): number | undefined {
  return expression.type === 'literal' && typeof expression.value === 'number' ? expression.value : undefined;
}

function shown(expression: SqlExpression): string {
  return expression.type === 'literal' ? show(expression.value) : expression.words;
}
