/**
 * Cuts SQL into words, literals and signs, bounds them and their nesting, and refuses by name what no query takes. Comments and spaces
 * separate tokens.
 */
import { checkNumber } from '../../http/syntax/json.ts';
import { aggregateFunctions } from './aggregation.ts';
import type { Fault, QueryLimits } from './list-query.ts';
import { cap } from './query-faults.ts';

export type SqlToken = {
  /** A word in lower case, or a sign; `'` for a string, `"` for a quoted name, `0` for a number; empty at the end. */
  readonly text: string;
  /** The value of a literal, or a quoted name without its quotes. */
  readonly value: string | number;
  readonly at: number;
};

/** Words, literals and signs in one query. */
export const sqlTokensMax = 400;

export const sqlForm =
  'the form is SELECT fields FROM collection WHERE condition GROUP BY fields HAVING condition ORDER BY fields LIMIT n OFFSET n';

/** Refused constructs, by the word or sign that begins them. */
const refused: ReadonlyMap<string, string> = new Map([
  ...(
    'union intersect except join distinct case cast into lateral using natural collate window returning similar ' +
    'with array'
  )
    .split(' ')
    .map((word) => [word, word.toUpperCase()] as const),
  ['for', 'FOR UPDATE or FOR SHARE'],
  ['select', 'a subquery'],
  ['[', 'an array or a subscript'],
  ['$', 'a parameter or a dollar-quoted string'],
  [':', 'a cast or a parameter'],
]);

/** First words of statements other than SELECT. */
const otherStatements: ReadonlySet<string> = new Set(
  (
    'insert update delete merge create alter drop truncate grant revoke with values table explain analyze vacuum copy ' +
    'begin start commit end rollback savepoint set reset show prepare execute deallocate declare fetch close call do ' +
    'listen notify unlisten lock comment refresh reindex cluster discard load import security replace pragma attach'
  ).split(' '),
);

/** Words that may stand before an opening parenthesis without being a function. */
const openers: ReadonlySet<string> = new Set(
  'in and or not any some where having by select limit offset like ilike between from first next'.split(' '),
);

/** Functions that a query may call, each of one field. */
const aggregates: ReadonlySet<string> = new Set([...aggregateFunctions, 'date_trunc']);

const leadingZeros = /^0+(?=\d)/;
const wholeNumber = /^\d+$/;
const wordStart = /^[a-z_]/;

/** Returns the tokens, with one at the end, or the first fault. */
export function scanSql(
  text: string,
  { sqlCharactersMax, filterDepthMax }: QueryLimits,
): readonly SqlToken[] | Fault {
  if (text.length <= sqlCharactersMax) return new Scan(text, filterDepthMax).run();
  return { kind: 'unprocessable', message: `a query in SQL has at most ${sqlCharactersMax} characters` };
}

class Scan {
  readonly #text: string;
  readonly #nestingMax: number;
  readonly #tokens: SqlToken[] = [];
  #fault: Fault | undefined;
  #at = 0;
  #nesting = 0;
  /** Nesting outside the current list of IN or ANY; -1 outside of any list. */
  #list = -1;
  /** Nesting outside the current call of an aggregate; -1 outside of any. */
  #call = -1;
  /** Consecutive NOT and signs. */
  #prefixes = 0;
  readonly #space = /(?:\s|--[^\n\r\u2028\u2029]*)+/y;
  readonly #commentMark = /\/\*|\*\//g;
  readonly #word = /[A-Za-z_]\w*/y;
  readonly #number = /(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;
  readonly #longSign = /!~~\*|!~[~*]?|~~\*|~[~*]|->>|#>>|->|#-|\|\||&&|<>|!=|<=|>=|<<|>>|@>|<@|@@|\?[|&]/y;

  constructor(text: string, nestingMax: number) {
    this.#text = text;
    this.#nestingMax = nestingMax;
  }

  run(): readonly SqlToken[] | Fault {
    for (;;) {
      this.#skip();
      if (this.#fault === undefined && this.#at < this.#text.length) this.#check(this.#read());
      else break;
    }
    if (this.#tokens.length === 0) this.#malformed('the query is empty');
    this.#tokens.push({ text: '', value: '', at: this.#at });
    return this.#fault ?? this.#tokens;
  }

  /** Skips spaces and comments, which nest in SQL. */
  #skip(): void {
    let open = 0;
    do {
      if (open === 0) this.#take(this.#space);
      if (open === 0 && !this.#text.startsWith('/*', this.#at)) return;
      this.#commentMark.lastIndex = this.#at;
      const [mark] = this.#commentMark.exec(this.#text) ?? [];
      if (mark === undefined) {
        this.#malformed('a comment is not closed');
        return;
      }
      open += mark === '/*' ? 1 : -1;
      this.#at = this.#commentMark.lastIndex;
    } while (this.#at < this.#text.length || open > 0);
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found !== undefined) this.#at = pattern.lastIndex;
    return found;
  }

  #read(): SqlToken {
    const at = this.#at;
    const first = this.#text.charAt(at);
    if (first === "'" || first === '"') return { text: first, value: this.#readQuoted(first), at };
    const word = this.#take(this.#word);
    if (word !== undefined) return { text: word.toLowerCase(), value: '', at };
    const number = this.#take(this.#number);
    if (number !== undefined) return { text: '0', value: this.#numberOf(number), at };
    const sign = this.#take(this.#longSign) ?? first;
    this.#at = at + sign.length;
    return { text: sign, value: '', at };
  }

  /** A doubled quote stands for itself. */
  #readQuoted(mark: string): string {
    const from = this.#at + 1;
    let end = this.#text.indexOf(mark, from);
    while (end !== -1 && this.#text.charAt(end + 1) === mark) end = this.#text.indexOf(mark, end + 2);
    // A first token is refused anyway.
    if (end === -1 && this.#tokens.length > 0)
      this.#malformed(`${mark === "'" ? 'a string' : 'a quoted name'} is not closed`);
    this.#at = end + 1;
    return this.#text.slice(from, end).replaceAll(mark + mark, mark);
  }

  /** An integer has to be exact; any other number is rounded. */
  #numberOf(written: string): number {
    const digits = written.replace(leadingZeros, '');
    const value = Number(digits);
    const fault = wholeNumber.test(digits) ? checkNumber(digits, 0) : undefined;
    if (typeof fault === 'string') this.#refuse(`${cap(digits)}: ${fault}`);
    if (!Number.isFinite(value)) this.#refuse(`${cap(digits)}: number beyond the range of a double`);
    return value;
  }

  #check(token: SqlToken): void {
    const { text } = token;
    const before = this.#tokens.at(-1)?.text;
    const isAfterDot = before === '.' && isWord(text);
    const name = isAfterDot ? undefined : refused.get(text);
    this.#tokens.push(token);
    if (this.#tokens.length > sqlTokensMax)
      this.#refuse(`a query in SQL has at most ${sqlTokensMax} words and signs`);
    else if (before === ';' && text !== ';') this.#refuse('only one statement is allowed');
    else if (isWord(text) && this.#text.charAt(this.#at) === "'")
      this.#notAllowed(`${cap(text).toUpperCase()}'...'`);
    else if (before === undefined) this.#checkFirst(text);
    else if (name !== undefined) this.#notAllowed(name);
    else if (text === '(') this.#open(before);
    else if (text === ')') this.#close();
    const isPrefix = text === 'not' || text === '-' || text === '+';
    this.#prefixes = isPrefix ? this.#prefixes + 1 : 0;
    if (this.#prefixes > this.#nestingMax)
      this.#refuse(`at most ${this.#nestingMax} of NOT, + and - may follow each other`);
  }

  #checkFirst(text: string): void {
    if (otherStatements.has(text)) this.#notAllowed(text.toUpperCase());
    else if (text !== 'select') this.#malformed(`the query does not start with SELECT; ${sqlForm}`);
  }

  #open(before: string): void {
    const isCall = aggregates.has(before);
    const isList = before === 'in' || before === 'any' || before === 'some';
    if (before === '"') this.#notAllowed('a function');
    else if (isWord(before) && !isCall && !openers.has(before))
      this.#notAllowed(`the function ${cap(before)}`);
    else if (isCall && (this.#call !== -1 || this.#list !== -1))
      this.#refuse('an aggregate takes a field, not another expression');
    else if (this.#list !== -1) this.#refuse('IN takes a list of literals');
    if (isCall) this.#call = this.#nesting;
    if (isList) this.#list = this.#nesting;
    this.#nesting += 1;
    if (this.#nesting > this.#nestingMax) this.#refuse(`parentheses nest at most ${this.#nestingMax} levels`);
  }

  #close(): void {
    this.#nesting -= 1;
    if (this.#nesting === this.#list) this.#list = -1;
    if (this.#nesting === this.#call) this.#call = -1;
    if (this.#nesting < 0) this.#malformed('a closing parenthesis has no opening one');
  }

  #notAllowed(what: string): void {
    this.#refuse(`${what} is not allowed in a query; ${sqlForm}`);
  }

  #malformed(message: string): void {
    this.#fault ??= { kind: 'malformed', message };
  }

  #refuse(message: string): void {
    this.#fault ??= { kind: 'unprocessable', message };
  }
}

export function isWord(text: string): boolean {
  return wordStart.test(text);
}
