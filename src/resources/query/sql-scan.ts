/**
 * Scans SQL before the parser reads it. pgsql-ast-parser is an Earley parser: it takes about 0.1 ms a token, and its
 * error report grows exponentially with nested calls and lists (ten open calls: 170 ms). The scan bounds tokens and
 * nesting, and refuses constructs that Comity never executes. Comments become spaces, because the parser reads quotes
 * inside them; positions in the text stay the same.
 */
import { checkNumber } from '../../http/syntax/json-number.ts';
import { cap } from './query-faults.ts';

export type SqlScan =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly kind: 'malformed' | 'unprocessable'; readonly message: string };

export type SqlBounds = { readonly charactersMax: number; readonly nestingMax: number };

/** Words, literals and signs in one query; 400 take the parser up to 45 ms. */
export const sqlTokensMax = 400;

/** Reserved words of refused constructs, with their names for messages. */
const refusedWords: ReadonlyMap<string, string> = new Map([
  ...['union', 'intersect', 'except', 'join', 'distinct', 'case', 'cast', 'into', 'lateral', 'using'].map(
    (word) => [word, word.toUpperCase()] as const,
  ),
  ...['natural', 'collate', 'ilike', 'window', 'returning', 'similar'].map(
    (word) => [word, word.toUpperCase()] as const,
  ),
  ['with', 'WITH'],
  ['for', 'FOR UPDATE or FOR SHARE'],
  ['array', 'ARRAY'],
  ['select', 'a subquery'],
]);

/** First words of statements other than SELECT. */
const otherStatements: ReadonlySet<string> = new Set(
  (
    'insert update delete merge create alter drop truncate grant revoke with values table explain analyze vacuum copy ' +
    'begin start commit end rollback savepoint set reset show prepare execute deallocate declare fetch close call do ' +
    'listen notify unlisten lock comment refresh reindex cluster discard load import security replace pragma attach'
  ).split(' '),
);

/** Words that may stand before an opening parenthesis without being a function call. */
const openers: ReadonlySet<string> = new Set(
  'in and or not any some where having by select limit offset like between from first next'.split(' '),
);

/** Functions that a query may call, each of one field. */
const aggregates: ReadonlySet<string> = new Set(['count', 'sum', 'avg', 'min', 'max']);

const leadingZeros = /^0+(?=\d)/;

/** Characters that end a line comment for the parser. */
const lineEnds = '\n\r\u2028\u2029';

export function scanSql(text: string, bounds: SqlBounds): SqlScan {
  if (text.length > bounds.charactersMax) {
    return unprocessable(`a query in SQL has at most ${bounds.charactersMax} characters`);
  }
  return new Scan(text, bounds).run();
}

/** One pass, which `#refusal` ends. */
class Scan {
  readonly #text: string;
  readonly #bounds: SqlBounds;
  #at = 0;
  #tokens = 0;
  #nesting = 0;
  /** Nesting outside the current `in` list; -1 outside of any list. */
  #list = -1;
  /** Nesting outside the current call of an aggregate; -1 outside of any. */
  #call = -1;
  /** Consecutive `not` and signs. */
  #prefixes = 0;
  /** The previous token: a word in lower case, `"` for a quoted name, otherwise empty. */
  #word = '';
  #ended = false;
  #cleaned = '';
  #copied = 0;
  #refusal: SqlScan | undefined;
  readonly #longPath = /(?:[A-Za-z_]\w*|"(?:[^"]|"")*")(?:\s*\.\s*(?:[A-Za-z_]\w*|"(?:[^"]|"")*")){3,}/y;
  readonly #namePart = /[A-Za-z_]\w*|"(?:[^"]|"")*"/g;
  readonly #withExponent = /(?:\d+(?:\.\d*)?|\.\d+)[eE][+-]?\d+(?![\w.])/y;

  constructor(text: string, bounds: SqlBounds) {
    this.#text = text;
    this.#bounds = bounds;
  }

  run(): SqlScan {
    while (this.#at < this.#text.length && this.#refusal === undefined) this.#step();
    if (this.#refusal !== undefined) return this.#refusal;
    if (this.#tokens === 0) return { ok: false, kind: 'malformed', message: 'the query is empty' };
    return { ok: true, text: this.#cleaned + this.#text.slice(this.#copied) };
  }

  #step(): void {
    const character = this.#text.charAt(this.#at);
    const two = this.#text.slice(this.#at, this.#at + 2);
    if (two === '--') this.#skipLine();
    else if (two === '/*') this.#skipBlock();
    else if (isSpace(character)) this.#at += 1;
    else this.#token(character);
  }

  #token(character: string): void {
    this.#tokens += 1;
    if (this.#word !== '.' && (this.#rewritePath() || this.#rewriteNumber())) return;
    if (this.#tokens > sqlTokensMax)
      this.#refuse(`a query in SQL has at most ${sqlTokensMax} words and signs`);
    else if (this.#ended && character !== ';') this.#refuse('only one statement is allowed');
    else if (isWordStart(character)) this.#readWord();
    else if (this.#tokens === 1) this.#malformed(`the query does not start with SELECT; ${sqlForm}`);
    else if (character === "'" || character === '"') this.#readQuoted(character);
    else this.#readSign(character);
  }

  /** The parser takes names of up to three parts: a longer one becomes one quoted name, which means the same here. */
  #rewritePath(): boolean {
    if (this.#tokens === 1 || this.#ended) return false;
    this.#longPath.lastIndex = this.#at;
    const [path] = this.#longPath.exec(this.#text) ?? [];
    if (path === undefined) return false;
    const names = [...path.matchAll(this.#namePart)].map(([name]) =>
      name.startsWith('"') ? name.slice(1, -1) : name,
    );
    this.#tokens += 2 * (names.length - 1);
    this.#replace(path.length, `"${names.join('.')}"`);
    this.#word = '"';
    return true;
  }

  /** The parser knows no exponents. */
  #rewriteNumber(): boolean {
    if (this.#tokens === 1 || this.#ended) return false;
    this.#withExponent.lastIndex = this.#at;
    const [literal] = this.#withExponent.exec(this.#text) ?? [];
    if (literal === undefined) return false;
    if (Number.isFinite(Number(literal))) this.#replace(literal.length, plainDecimal(Number(literal)));
    else this.#refuse(`${cap(literal)}: number beyond the range of a double`);
    this.#word = '';
    this.#prefixes = 0;
    return true;
  }

  #replace(length: number, text: string): void {
    this.#cleaned += this.#text.slice(this.#copied, this.#at) + text;
    this.#at += length;
    this.#copied = this.#at;
  }

  #readWord(): void {
    const start = this.#at;
    while (isWordPart(this.#text.charAt(this.#at))) this.#at += 1;
    const word = this.#text.slice(start, this.#at).toLowerCase();
    const refused = this.#refusedAs(word);
    if (refused !== undefined) this.#notAllowed(refused);
    else if (this.#tokens === 1 && word !== 'select')
      this.#malformed(`the query does not start with SELECT; ${sqlForm}`);
    if (word === 'not') this.#countPrefix();
    else this.#prefixes = 0;
    this.#word = word;
  }

  /** Names the refused construct that the word starts, if any. */
  #refusedAs(word: string): string | undefined {
    if (this.#text.charAt(this.#at) === "'") return `${cap(word).toUpperCase()}'...'`;
    if (this.#tokens === 1) return otherStatements.has(word) ? word.toUpperCase() : undefined;
    // After a dot the word is a column name.
    return this.#word === '.' ? undefined : refusedWords.get(word);
  }

  #readQuoted(mark: string): void {
    let at = this.#text.indexOf(mark, this.#at + 1);
    while (at !== -1 && this.#text.charAt(at + 1) === mark) at = this.#text.indexOf(mark, at + 2);
    if (at === -1) {
      const what = mark === "'" ? 'a string' : 'a quoted name';
      this.#refusal = { ok: false, kind: 'malformed', message: `${what} is not closed` };
      return;
    }
    this.#at = at + 1;
    this.#prefixes = 0;
    this.#word = mark === '"' ? mark : '';
  }

  #readSign(character: string): void {
    const before = this.#word;
    this.#at += 1;
    this.#word = character === '.' ? character : '';
    if (character === '-' || character === '+') this.#countPrefix();
    else this.#prefixes = 0;
    if (character === '(') this.#open(before);
    else if (character === ')') this.#close();
    else if (character === '[') this.#notAllowed('an array or a subscript');
    else if (character === '$') this.#notAllowed('a parameter or a dollar-quoted string');
    else if (character === ':') this.#notAllowed('a cast or a parameter');
    else if (character === ';') this.#ended = true;
    else if (isDigit(character)) {
      const start = this.#at - 1;
      while (isDigit(this.#text.charAt(this.#at)) || this.#text.charAt(this.#at) === '.') this.#at += 1;
      // The parser rounds an integer that a double cannot keep; a decimal is rounded as in JSON.
      const literal = this.#text.slice(start, this.#at).replace(leadingZeros, '');
      const fault = literal.includes('.') ? undefined : checkNumber(literal, 0);
      if (typeof fault === 'string') this.#refuse(`${cap(literal)}: ${fault}`);
    }
  }

  #open(before: string): void {
    if (before === '"') this.#notAllowed('a function');
    else if (aggregates.has(before)) this.#openCall();
    else if (before !== '' && before !== '.' && !openers.has(before)) {
      this.#notAllowed(`the function ${cap(before)}`);
    } else if (this.#list !== -1) this.#refuse('IN takes a list of literals');
    else this.#nest(before === 'in' || before === 'any' || before === 'some');
  }

  #openCall(): void {
    if (this.#call !== -1 || this.#list !== -1)
      this.#refuse('an aggregate takes a field, not another expression');
    else {
      this.#call = this.#nesting;
      this.#nest(false);
    }
  }

  #nest(isList: boolean): void {
    if (isList) this.#list = this.#nesting;
    this.#nesting += 1;
    const { nestingMax } = this.#bounds;
    if (this.#nesting > nestingMax) this.#refuse(`parentheses nest at most ${nestingMax} levels`);
  }

  #close(): void {
    this.#nesting -= 1;
    if (this.#nesting === this.#list) this.#list = -1;
    if (this.#nesting === this.#call) this.#call = -1;
    if (this.#nesting < 0) this.#malformed('a closing parenthesis has no opening one');
  }

  #countPrefix(): void {
    this.#prefixes += 1;
    if (this.#prefixes > this.#bounds.nestingMax) {
      this.#refuse(`at most ${this.#bounds.nestingMax} of NOT, + and - may follow each other`);
    }
  }

  #skipLine(): void {
    const from = this.#at;
    while (this.#at < this.#text.length && !lineEnds.includes(this.#text.charAt(this.#at))) this.#at += 1;
    this.#blank(from);
  }

  /** Block comments nest in SQL. */
  #skipBlock(): void {
    const from = this.#at;
    let open = 0;
    do {
      const two = this.#text.slice(this.#at, this.#at + 2);
      if (two === '/*') open += 1;
      else if (two === '*/') open -= 1;
      this.#at += two === '/*' || two === '*/' ? 2 : 1;
    } while (open > 0 && this.#at < this.#text.length);
    if (open > 0) this.#malformed('a comment is not closed');
    else this.#blank(from);
  }

  #blank(from: number): void {
    this.#cleaned += this.#text.slice(this.#copied, from) + ' '.repeat(this.#at - from);
    this.#copied = this.#at;
  }

  #notAllowed(what: string): void {
    this.#refuse(`${what} is not allowed in a query; ${sqlForm}`);
  }

  #malformed(message: string): void {
    this.#refusal = { ok: false, kind: 'malformed', message };
  }

  #refuse(message: string): void {
    this.#refusal = unprocessable(message);
  }
}

export const sqlForm =
  'the form is SELECT fields FROM collection WHERE condition GROUP BY fields HAVING condition ORDER BY fields LIMIT n OFFSET n';

/** The shortest decimal digits of the number, without an exponent. */
function plainDecimal(value: number): string {
  const [mantissa = '0', exponent = '0'] = String(value).split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const at = whole.length + Number(exponent);
  const digits = (whole + fraction).padEnd(at, '0');
  return at > 0
    ? `${digits.slice(0, at)}${at < digits.length ? `.${digits.slice(at)}` : ''}`
    : `0.${'0'.repeat(-at)}${digits}`;
}

function unprocessable(message: string): SqlScan {
  return { ok: false, kind: 'unprocessable', message };
}

function isSpace(character: string): boolean {
  return character === ' ' || (character >= '\t' && character <= '\r');
}

function isDigit(character: string): boolean {
  return character >= '0' && character <= '9';
}

function isWordStart(character: string): boolean {
  const lower = character.toLowerCase();
  return (lower >= 'a' && lower <= 'z') || character === '_';
}

function isWordPart(character: string): boolean {
  return isWordStart(character) || isDigit(character);
}
