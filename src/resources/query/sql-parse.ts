/**
 * The grammar of SQL in a QUERY, by recursive descent over the tokens of a scan, which bounds the recursion. Operators bind as in PostgreSQL,
 * and the same words are reserved.
 */
import { cap } from './query-faults.ts';
import { isWord, type SqlToken } from './sql-scan.ts';

export type SqlValue = string | number | boolean | null;

/** The name of the expression in messages. */
type Worded = { readonly words: string };
type Compound = Worded & { readonly items: readonly SqlExpression[] };

export type SqlCall = Compound & { readonly type: 'call'; readonly name: string };

/** Dots join the names of a path; the last may be `*`. In HAVING and ORDER BY an aggregate may stand for a field. */
export type SqlField = SqlCall | (Worded & { readonly type: 'field'; readonly name: string });

export type SqlExpression =
  | SqlField
  | (Worded & { readonly type: 'literal'; readonly value: SqlValue })
  | (Compound & { readonly type: 'operation'; readonly name: string })
  | (Compound & { readonly type: 'any' | 'list' })
  | (Worded & { readonly type: 'other' });

/** Stands for what is absent or does not parse. */
export const nothing: SqlExpression = { type: 'other', words: 'nothing' };

/** The words and signs that may follow an operand, from those that bind least to those that bind most. */
const levels: ReadonlyMap<string, number> = new Map(
  [
    ...['or', 'and', 'not', '= != <>', 'is isnull notnull'],
    ...['< <= > >= @> <@ ? ?| ?& #>> << >> ~ ~* !~ !~* @@', 'between', '| & #', 'like ilike ~~ !~~ ~~* !~~*'],
    ...['in', '+ - || #- &&', '* / %', '^', '-> ->>'],
  ].flatMap((signs, level) => signs.split(' ').map((sign) => [sign, level] as const)),
);
const notLevel = 2;

const spellings: ReadonlyMap<string, string> = new Map([
  ['<>', '!='],
  ['~~', 'LIKE'],
  ['!~~', 'NOT LIKE'],
  ['~~*', 'ILIKE'],
  ['!~~*', 'NOT ILIKE'],
]);

/** Words that stand for a value. */
const values: ReadonlyMap<string, SqlExpression> = new Map([
  ['true', literal(true)],
  ['false', literal(false)],
  ['null', literal(null)],
  ['default', { type: 'other', words: 'the expression default' } as const],
  ...(
    'current_catalog current_date current_role current_schema current_time current_timestamp current_user ' +
    'localtime localtimestamp session_user user'
  )
    .split(' ')
    .map((word) => [word, { type: 'other', words: `the keyword ${word}` }] as const),
]);

/** Words that are names only in quotes or after a dot. */
const reserved: ReadonlySet<string> = new Set([
  ...values.keys(),
  ...(
    'all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation ' +
    'concurrently constraint create cross deferrable desc distinct do else end except fetch for foreign freeze from full ' +
    'grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit natural ' +
    'not notnull offset on only or order outer overlaps placing references returning right select similar some symmetric ' +
    'table tablesample then to trailing union using variadic verbose when where window with'
  ).split(' '),
]);

export type SqlSelect = ReturnType<Parser['select']>;

/** Reads one SELECT; returns the token that no rule takes, if there is one. */
export function parseSql(tokens: readonly SqlToken[]): SqlSelect | { readonly failed: SqlToken } {
  const parser = new Parser(tokens);
  const select = parser.select();
  return parser.failed === undefined ? select : { failed: parser.failed };
}

/** A token that no rule takes moves the parser to the end, so that every rule returns. */
class Parser {
  failed: SqlToken | undefined;
  readonly #tokens: readonly SqlToken[];
  #at = 0;

  constructor(tokens: readonly SqlToken[]) {
    this.#tokens = tokens;
  }

  select() {
    this.#expect('select');
    this.#take('all');
    const isBare = ['from', ';', ''].includes(this.#next);
    const columns = isBare ? [] : this.#list(() => this.#aliased(this.#item()));
    const from = this.#take('from') ? this.#list(() => this.#aliased(this.#named())) : [];
    const where = this.#take('where') ? this.#item() : undefined;
    const groups = this.#take('group', 'by') ? this.#list(() => this.#item()) : [];
    const having = groups.length > 0 && this.#take('having') ? this.#item() : undefined;
    const orderBy = this.#orderBy();
    const page = this.#page();
    while (this.#take(';'));
    this.#expect('');
    const [list] = groups;
    const groupBy = list?.type === 'list' && groups.length === 1 ? list.items : groups;
    return { columns, from, where, groupBy, having, orderBy, ...page };
  }

  #orderBy() {
    if (!this.#take('order', 'by')) return [];
    return this.#list(() => {
      const by = this.#item();
      const isDescending = this.#take('desc');
      if (!isDescending) this.#take('asc');
      if (!this.#take('nulls')) return { by, isDescending };
      const isNullLast = this.#take('last');
      if (!isNullLast) this.#expect('first');
      return { by, isDescending, isNullLast };
    });
  }

  /** LIMIT, which FETCH FIRST n ROWS ONLY also spells, and OFFSET, each once and in any order. */
  #page() {
    let limit: SqlExpression | undefined;
    let offset: SqlExpression | undefined;
    for (;;) {
      if (limit === undefined && this.#take('limit')) limit = this.#expression();
      else if (limit === undefined && this.#take('fetch')) {
        if (!this.#take('first')) this.#take('next');
        limit = this.#next.startsWith('row') ? nothing : this.#expression();
        if (!this.#take('row')) this.#expect('rows');
        this.#expect('only');
      } else if (offset === undefined && this.#take('offset')) {
        offset = this.#expression();
        if (!this.#take('row')) this.#take('rows');
      } else return { limit, offset };
    }
  }

  /** Takes the word or sign if it is next; the others have to follow it. */
  #take(first: string, ...others: readonly string[]): boolean {
    if (this.#next !== first) return false;
    this.#at += 1;
    for (const each of others) this.#expect(each);
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) this.#fail();
  }

  #list<T>(read: () => T): readonly T[] {
    const items = [read()];
    while (this.#take(',')) items.push(read());
    return items;
  }

  /** An expression, or `*`. */
  #item(): SqlExpression {
    return this.#take('*') ? fieldOf('*') : this.#expression();
  }

  /** @param least the lowest level of an operator outside of parentheses */
  #expression(least = 0): SqlExpression {
    let left =
      least <= notLevel && this.#take('not') ? operation('NOT', this.#expression(notLevel)) : this.#operand();
    for (;;) {
      const text = this.#next;
      // NOT after an operand belongs to BETWEEN, IN or LIKE.
      const level = levels.get(text === 'not' ? 'between' : text) ?? -1;
      if (level < least) return left;
      this.#at += 1;
      left = this.#operation(left, text, level);
    }
  }

  /** A field or a function. */
  #named(): SqlExpression {
    let name = this.#name(false);
    while (this.#take('.')) {
      if (this.#take('*')) return fieldOf(`${name}.*`);
      name += `.${this.#name(true)}`;
    }
    if (this.#next !== '(') return fieldOf(name);
    return { type: 'call', name, words: `the function ${cap(name)}`, items: this.#arguments() };
  }

  #aliased(expression: SqlExpression) {
    return { expression, alias: this.#take('as') || this.#isName ? this.#name(false) : undefined };
  }

  get #next(): string {
    return this.#token.text;
  }

  get #token(): SqlToken {
    return this.#tokens[this.#at] ?? { text: '', value: '', at: 0 };
  }

  get #isName(): boolean {
    const { text, value } = this.#token;
    // As `*` means every field, no name has it.
    return text === '"' ? value !== '' && !String(value).includes('*') : isWord(text) && !reserved.has(text);
  }

  #operation(left: SqlExpression, word: string, level: number): SqlExpression {
    switch (word) {
      case 'not': {
        const next = this.#next;
        if (!this.#take('between') && !this.#take('in') && !this.#take('ilike')) this.#expect('like');
        const found = this.#operation(left, next, level);
        return found.type === 'operation' ? operation(`NOT ${found.name}`, ...found.items) : found;
      }
      case 'isnull':
        return operation('IS NULL', left);
      case 'notnull':
        return operation('IS NOT NULL', left);
      case 'is': {
        const not = this.#take('not') ? 'NOT ' : '';
        const next = this.#next;
        if (!this.#take('true') && !this.#take('false')) this.#expect('null');
        return operation(`IS ${not}${next.toUpperCase()}`, left);
      }
      case 'between': {
        const low = this.#expression(level + 1);
        this.#expect('and');
        return operation('BETWEEN', left, low, this.#expression(level + 1));
      }
      case 'in':
        return operation('IN', left, this.#operand());
      default:
        return operation(spellings.get(word) ?? word.toUpperCase(), left, this.#expression(level + 1));
    }
  }

  #operand(): SqlExpression {
    const { text, value } = this.#token;
    if (this.#take('-') || this.#take('+')) return signed(text, this.#operand());
    if (this.#isName) {
      const named = this.#named();
      // A type before a string.
      return this.#take("'") ? { type: 'other', words: 'a cast' } : named;
    }
    if (this.#take('0') || this.#take("'")) return literal(value);
    if (this.#take('any') || this.#take('some'))
      return { type: 'any', words: `the function ${text}`, items: this.#arguments() };
    if (this.#take('(')) {
      const items = this.#list(() => this.#expression());
      this.#expect(')');
      const [only = nothing, ...others] = items;
      return others.length === 0 ? only : { type: 'list', words: 'a row of values', items };
    }
    const known = values.get(text);
    if (known === undefined) this.#fail();
    else this.#take(text);
    return known ?? nothing;
  }

  #arguments(): readonly SqlExpression[] {
    this.#expect('(');
    const items = this.#take('all') ? [nothing] : [];
    if (this.#next !== ')' && this.#next !== 'order') items.push(...this.#list(() => this.#item()));
    // ALL and ORDER BY count as arguments, of which no function takes several.
    if (this.#orderBy().length > 0) items.push(nothing);
    this.#expect(')');
    return items;
  }

  #name(isAfterDot: boolean): string {
    const { text, value } = this.#token;
    if (this.#isName || (isAfterDot && isWord(text))) this.#at += 1;
    else this.#fail();
    return text === '"' ? String(value) : text;
  }

  #fail(): void {
    this.failed ??= this.#token;
    this.#at = this.#tokens.length - 1;
  }
}

function literal(value: SqlValue): SqlExpression {
  return { type: 'literal', value, words: 'a literal here' };
}

function fieldOf(name: string): SqlExpression {
  return { type: 'field', name, words: 'a field here' };
}

function operation(name: string, ...items: readonly SqlExpression[]): SqlExpression {
  return { type: 'operation', name, words: `the operator ${name} here`, items };
}

/** A signed number is a literal. */
function signed(sign: string, operand: SqlExpression): SqlExpression {
  if (operand.type !== 'literal' || typeof operand.value !== 'number') return operation(sign, operand);
  return sign === '-' ? literal(-operand.value) : operand;
}
