/**
 * Bodies of an endpoint's own form: a JSON text with placeholders, or a preset for a chat (§6.17). A placeholder names a member of the event
 * by its path, as `{{data.object.name}}`. Within a string it stands for the characters of the value, escaped by the rules of JSON strings
 * (RFC 8259 §7); outside of one, for the value itself, `null` if there is none. So a body is JSON whatever values an event has.
 *
 * Values reach chats as plain text: none of them can mention everybody or hide a link.
 */
import { cutMembers } from '../../http/syntax/json-members.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import { objectSpan } from '../../model/event.ts';
import { fittingText } from '../../work/settlement.ts';

export const templateCharactersMax = 8192;
/** A body above it is not sent. Slack takes some 40,000 characters, Teams 28 KB. */
export const templatedBytesMax = 65_536;

/** `{{summary}}` of a preset: these many members, with as much of their names and values. Discord takes 2,000 characters in all. */
const summaryMembersMax = 10;
const summaryNameCharactersMax = 40;
const summaryValueCharactersMax = 120;

const line = '{{type}}\\n{{summary}}';

const presets = {
  // https://docs.slack.dev/reference/block-kit/composition-objects/text-object: `plain_text` has no mentions and no links.
  slack: `{"text":"{{type}}","blocks":[{"type":"section","text":{"type":"plain_text","emoji":false,"text":"${line}"}}]}`,
  // https://docs.discord.com/developers/resources/message#allowed-mentions-object
  discord: `{"content":"${line}","allowed_mentions":{"parse":[]}}`,
  // A card, in which a TextRun has no Markdown.
  teams: `{"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","type":"AdaptiveCard","version":"1.4","body":[{"type":"TextBlock","weight":"Bolder","wrap":true,"text":"{{type}}"},{"type":"RichTextBlock","inlines":[{"type":"TextRun","text":"{{summary}}"}]}]}}]}`,
} as const;

/** Members of an event (§2.6), and what is made of it. */
const roots: ReadonlySet<string> = new Set(['id', 'object', 'type', 'created', 'tenant', 'data', 'summary']);

type Placeholder = { readonly path: readonly string[]; readonly isWithinString: boolean };
/** A literal text, or what stands for a value. */
type Piece = string | Placeholder;

/** Returns why the text is no template, as a predicate; undefined for a valid one. */
export function templateFault(template: string): string | undefined {
  const pieces = piecesOf(textOf(template));
  const unknown = pieces.find((piece) => typeof piece !== 'string' && !roots.has(piece.path[0] ?? ''));
  if (unknown !== undefined && typeof unknown !== 'string') {
    const name = fittingText(unknown.path.join('.'), summaryNameCharactersMax);
    return `must not have the placeholder {{${name}}}: placeholders are {{id}}, {{type}}, {{created}}, {{tenant}}, {{summary}} and members of the resource, such as {{data.object.id}}`;
  }
  // Neither stands where JSON permits it only by what is before or after, such as within an escape or a number.
  const sample = pieces.map((piece) =>
    typeof piece === 'string' ? piece : piece.isWithinString ? '-' : 'null',
  );
  try {
    JSON.parse(sample.join(''));
    return undefined;
  } catch {
    return `must be ${Object.keys(presets).join(', ')} or JSON with placeholders, such as {"text": "{{type}}: {{data.object.name}}"}`;
  }
}

/** @returns makes the body of an event from its document; undefined: it would have more than `templatedBytesMax` octets */
function compileTemplate(template: string): (doc: string) => string | undefined {
  const pieces = piecesOf(textOf(template));
  return (doc) => {
    const event: unknown = JSON.parse(doc);
    const values = new Map<string, string>();
    let body = '';
    for (const piece of pieces) {
      body += typeof piece === 'string' ? piece : valueText(piece, event, values);
      // Characters are at most octets: what is above is not made first.
      if (body.length > templatedBytesMax) return undefined;
    }
    return Buffer.byteLength(body) > templatedBytesMax ? undefined : body;
  };
}

/** An event as an endpoint is sent it. `text`: its body, if the endpoint has a template. */
export type ShapedEvent = { readonly doc: string; readonly text?: string };

/** @returns changes the document of an event for the endpoint; undefined: its body would be too large */
export function createShape({
  omit = [],
  template,
}: Pick<Endpoint, 'omit' | 'template'>): (doc: string) => ShapedEvent | undefined {
  const render = template === undefined ? undefined : compileTemplate(template);
  return (whole) => {
    const doc = omit.length === 0 ? whole : withoutMembers(whole, omit);
    if (render === undefined) return { doc };
    const text = render(doc);
    return text === undefined ? undefined : { doc, text };
  };
}

function withoutMembers(doc: string, names: readonly string[]): string {
  const object = objectSpan(doc);
  if (object === undefined) return doc;
  const { json } = cutMembers(doc.slice(object.start, object.end), names);
  return `${doc.slice(0, object.start)}${json}${doc.slice(object.end)}`;
}

function textOf(template: string): string {
  return Object.hasOwn(presets, template) ? presets[template as keyof typeof presets] : template;
}

function piecesOf(template: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let isWithinString = false;
  let end = 0;
  for (const match of template.matchAll(/\{\{\s*([^{}\s"]+)\s*\}\}/g)) {
    const literal = template.slice(end, match.index);
    if (hasOddQuotes(literal)) isWithinString = !isWithinString;
    pieces.push(literal, { path: (match[1] ?? '').split('.'), isWithinString });
    end = match.index + match[0].length;
  }
  pieces.push(template.slice(end));
  return pieces;
}

/** An escape is two characters; a literal that ends within one is no part of a valid template. */
function hasOddQuotes(literal: string): boolean {
  return (literal.replaceAll(/\\./gs, '').split('"').length - 1) % 2 === 1;
}

/** The text of a value is made once for all places of its placeholder. */
function valueText(
  { path, isWithinString }: Placeholder,
  event: unknown,
  values: Map<string, string>,
): string {
  const key = `${isWithinString} ${path.join('.')}`;
  const found = values.get(key);
  if (found !== undefined) return found;
  const value = path[0] === 'summary' ? summaryOf(event) : memberOf(event, path);
  const text = isWithinString ? escaped(value) : JSON.stringify(value ?? null);
  values.set(key, text);
  return text;
}

function escaped(value: unknown): string {
  if (value === undefined || value === null) return '';
  return JSON.stringify(typeof value === 'string' ? value : JSON.stringify(value)).slice(1, -1);
}

/** Items of arrays are named by their index. */
function memberOf(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found;
}

/** The first members of the resource that are no objects, a line each. */
function summaryOf(event: unknown): string {
  const object = memberOf(event, ['data', 'object']);
  if (typeof object !== 'object' || object === null) return '';
  return Object.entries(object)
    .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
    .slice(0, summaryMembersMax)
    .map(([name, value]) => {
      const shown = fittingText(String(value), summaryValueCharactersMax).replaceAll(/\s+/g, ' ');
      return `${fittingText(name, summaryNameCharactersMax)}: ${shown}`;
    })
    .join('\n');
}
