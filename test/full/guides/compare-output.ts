/**
 * Whether a command printed what its page shows. What differs from run to run is renamed on both sides: ids, revisions in
 * entity tags, tokens and cursors to the number of their first appearance, so that the same one must stand wherever the
 * page shows the same one; times and dates to a word. All else must be equal, with these liberties for the page:
 *
 *   http   shows only some header fields (those it shows must be there), any value may be cut short with `...`
 *   json   lays the value out as it likes; so does a JSON body in `http` and a `data:` line in `text`
 *   text   a line `...` stands for any lines
 */
import assert from 'node:assert/strict';

type Form = 'http' | 'json' | 'text';

/** Remembers the renamed values of one side through a whole page. */
type Names = Map<string, number>;

export class OutputComparison {
  #shownNames: Names = new Map();
  #printedNames: Names = new Map();

  /** Throws an AssertionError that shows both sides, renamed. A failed comparison leaves no name behind. */
  compare(form: Form, shown: string, printed: string): void {
    const before = [new Map(this.#shownNames), new Map(this.#printedNames)] as const;
    try {
      if (form === 'http') this.#compareHttp(shown, printed);
      else this.#compareContent(form, shown, printed);
    } catch (error) {
      [this.#shownNames, this.#printedNames] = before;
      throw error;
    }
  }

  #compareHttp(shown: string, printed: string): void {
    const wanted = splitMessage(shown);
    const got = splitMessage(printed.replaceAll('\r\n', '\n'));
    assert.equal(got.statusLine, wanted.statusLine, `${got.statusLine}\n${got.content}`);
    for (const [name, value] of wanted.fields) {
      const actual = got.fields.get(name);
      assert.ok(actual !== undefined, `there is no ${name} among ${[...got.fields.keys()].join(', ')}`);
      this.#compareLine(`${name}: ${value}`, `${name}: ${actual}`);
    }
    this.#compareContent(isJson(wanted.content) ? 'json' : 'text', wanted.content, got.content);
  }

  #compareContent(form: 'json' | 'text', shown: string, printed: string): void {
    if (form === 'json') {
      assert.ok(isJson(printed), `not JSON: ${printed}`);
      this.#compareLine(JSON.stringify(JSON.parse(shown)), JSON.stringify(JSON.parse(printed)));
      return;
    }
    const wanted = shown.trim().split('\n');
    const got = printed.replaceAll('\r\n', '\n').trim().split('\n');
    if (!wanted.includes('...'))
      assert.equal(got.length, wanted.length, `other lines than shown:\n${printed}`);
    let at = 0;
    for (const [index, line] of wanted.entries()) {
      if (line === '...') {
        const left = wanted.slice(index + 1);
        assert.ok(!left.includes('...'), 'only one line "..." is understood');
        at = got.length - left.length;
        continue;
      }
      this.#compareLine(line.trimEnd(), got[at]?.trimEnd() ?? '');
      at += 1;
    }
  }

  #compareLine(shown: string, printed: string): void {
    const wanted = rename(shown, this.#shownNames);
    const got = rename(printed, this.#printedNames);
    if (wanted.includes('...')) assert.match(got, elided(wanted));
    else assert.equal(got, wanted);
  }
}

type Message = {
  readonly statusLine: string;
  /** By name as written; fields that came more than once are joined. */
  readonly fields: ReadonlyMap<string, string>;
  readonly content: string;
};

function splitMessage(text: string): Message {
  const [head = '', ...rest] = text.split('\n\n');
  const [statusLine = '', ...lines] = head.split('\n');
  const fields = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon === -1) continue;
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).trim();
    const earlier = fields.get(name);
    fields.set(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  return { statusLine, fields, content: rest.join('\n\n').trim() };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function elided(line: string): RegExp {
  return new RegExp(
    `^${line
      .split('...')
      .map((part) => RegExp.escape(part))
      .join('.*')}$`,
  );
}

/** What is renamed: the kind it is numbered under (none: a word stands for all), and where it is found. */
const volatile: readonly (readonly [kind: string, numbered: boolean, pattern: RegExp])[] = [
  ['time', false, /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g],
  ['date', false, /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g],
  ['seconds', false, /(?<="created":)\d{10}\b/g],
  ['id', true, /(?<![\w-])(?:evt_|op_|rec_)?[0-7][0-9a-hjkmnp-tv-z]{25}(?![\w-])/g],
  ['token', true, /(?<=\/queries\/)[\w-]{22,}(?![\w-])/g],
  ['cursor', true, /(?<=cursor=|"nextCursor":")[\w-]{20,}/g],
  // "12", also in a text of JSON, "1c.p", "12-gzip", "1c.p.Q7bnx2Kd", W/"12"; and the version of a result that is kept. Those of lists are in base 36.
  ['mark', true, /(?<="[\da-z]+\.\w\.)[\w-]{8}(?=[";-])/g],
  ['rev', true, /(?<=")\d+(?=(?:-[^"\s]*)?\\?"(?!:))/g],
  ['list-rev', true, /(?<=")[\da-z]+(?=\.p[.";-])|(?<=\/results\/)[\da-z]+/g],
];

/** The same revision has one name, however it is written. */
function keyOf(kind: string, value: string): string {
  return kind === 'list-rev' ? `rev ${Number.parseInt(value, 36)}` : `${kind} ${value}`;
}

function rename(line: string, names: Names): string {
  let text = line;
  for (const [kind, numbered, pattern] of volatile) {
    text = text.replace(pattern, (value) =>
      numbered ? `<${kind} ${numberOf(keyOf(kind, value), names)}>` : `<${kind}>`,
    );
  }
  return text;
}

function numberOf(key: string, names: Names): number {
  const known = names.get(key);
  if (known !== undefined) return known;
  names.set(key, names.size + 1);
  return names.size;
}
