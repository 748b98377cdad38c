/**
 * Which text content is, from its first octets: the encoding, and HTML, SVG, XML, JSON or a format with a signature. What a browser would
 * take for HTML is found as WHATWG MIME Sniffing §7.1 finds it; comments, processing instructions and a DOCTYPE before the root are skipped,
 * so that an SVG or a page behind them is found too.
 */

export type FoundText = {
  readonly type: string;
  /** `utf-8` and `utf-16` are certain; `ascii`: as far as was read; undefined: none of them, such as Windows-1252. */
  readonly charset: 'ascii' | 'utf-8' | 'utf-16' | undefined;
};

type Decoded = { readonly text: string; readonly charset: FoundText['charset'] };

/** Undefined if the content is no text. @param isWhole false if the content goes on after `head` */
export function findTextType(head: Uint8Array, isWhole: boolean): FoundText | undefined {
  const decoded = decode(head, isWhole);
  if (decoded === undefined) return undefined;
  const { text, charset } = decoded;
  const signature = signatures.find(([, form]) => form.test(text))?.[0];
  const type = signature ?? findMarkup(text) ?? (isJson(text, isWhole) ? 'application/json' : 'text/plain');
  return { type, charset };
}

/** A browser that sniffs looks for HTML before it looks for octets that no text has. */
export function findMarkupIn(head: Uint8Array): string | undefined {
  return findMarkup(latin1.decode(head.subarray(0, 4096)));
}

const latin1 = new TextDecoder('latin1');
const utf16 = { le: new TextDecoder('utf-16le'), be: new TextDecoder('utf-16be') };

/** MIME Sniffing §3, "binary data byte": no text has them; TAB, LF, FF, CR and ESC may occur. */
const binary = /[\u0000-\u0008\u000b\u000e-\u001a\u001c-\u001f]/;
const beyondAscii = /[^\0-\u007f]/;

function decode(head: Uint8Array, isWhole: boolean): Decoded | undefined {
  const [first, second] = head;
  if (first === 0xff && second === 0xfe) return wide(head.subarray(2), utf16.le);
  if (first === 0xfe && second === 0xff) return wide(head.subarray(2), utf16.be);
  const octets = latin1.decode(head);
  if (binary.test(octets)) return withoutMark(head);
  if (!beyondAscii.test(octets)) return { text: octets, charset: 'ascii' };
  try {
    // A decoder that streams keeps the octets of a character that is cut.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: !isWhole });
    return { text, charset: 'utf-8' };
  } catch {
    return { text: octets, charset: undefined };
  }
}

function wide(octets: Uint8Array, decoder: TextDecoder): Decoded | undefined {
  const text = decoder.decode(octets);
  return binary.test(text) ? undefined : { text, charset: 'utf-16' };
}

/** Octets with fewer are not judged to be UTF-16 without its mark. */
const wideOctetsMin = 16;

/** UTF-16 without a byte order mark: no character that no text has, and most of ASCII, whose other octet is zero. */
function withoutMark(head: Uint8Array): Decoded | undefined {
  if (head.length < wideOctetsMin) return undefined;
  const decoder = head[0] === 0 ? utf16.be : utf16.le;
  const { text } = wide(head.subarray(0, head.length - (head.length % 2)), decoder) ?? {};
  if (text === undefined || !text.isWellFormed()) return undefined;
  let ascii = 0;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) < 0x80) ascii += 1;
  return 2 * ascii > text.length ? { text, charset: 'utf-16' } : undefined;
}

const signatures: readonly (readonly [type: string, form: RegExp])[] = [
  ['application/pdf', /^\s{0,64}%PDF-\d/],
  ['application/postscript', /^\u0004?%!PS-Adobe-/],
  ['application/rtf', /^\{\\rtf/],
  ['text/vcard', /^BEGIN:VCARD\r?\n/i],
  ['text/calendar', /^BEGIN:VCALENDAR\r?\n/i],
  ['text/vtt', /^WEBVTT(?:[ \t\r\n]|$)/],
];

/** The elements of MIME Sniffing §7.1; `svg` and `html` are looked for on their own. */
const elements: ReadonlySet<string> = new Set(
  'head script iframe h1 div font table a style title b body br p'.split(' '),
);
const space = /\s*/y;
const declaration = /<\?xml[\s?]/iy;
const doctype = /<!doctype\s+([^\s[>]+)/iy;
const element = /<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)(?=[\s>/]|$)/y;
const namespace = /\sxmlns/;

function findMarkup(text: string): string | undefined {
  let at = matchAt(space, text, 0)?.[0].length ?? 0;
  let isXml = matchAt(declaration, text, at) !== undefined;
  let hasComment = false;
  for (;;) {
    const type = matchAt(doctype, text, at)?.[1]?.toLowerCase();
    let end = -1;
    if (text.startsWith('<!--', at)) {
      hasComment = true;
      end = endOf('-->', text, at + 4);
    } else if (text.startsWith('<?', at)) end = endOf('?>', text, at + 2);
    else if (type === undefined) return findRoot(text, at, { isXml, hasComment });
    else if (type === 'html') return isXml ? 'application/xhtml+xml' : 'text/html';
    else if (type === 'svg' || type.endsWith(':svg')) return 'image/svg+xml';
    else {
      isXml = true;
      end = endOfDoctype(text, at);
    }
    if (end === -1) return unknownMarkup({ isXml, hasComment });
    at = end + (matchAt(space, text, end)?.[0].length ?? 0);
  }
}

type Prolog = { readonly isXml: boolean; readonly hasComment: boolean };

function findRoot(text: string, at: number, prolog: Prolog): string | undefined {
  const name = matchAt(element, text, at)?.[1]?.toLowerCase();
  if (name === undefined) return unknownMarkup(prolog);
  if (name === 'svg') return 'image/svg+xml';
  if (name === 'html') return prolog.isXml ? 'application/xhtml+xml' : 'text/html';
  if (prolog.isXml) return 'application/xml';
  if (elements.has(name)) return 'text/html';
  const close = text.indexOf('>', at);
  const hasNamespace = close !== -1 && namespace.test(text.slice(at, close));
  return hasNamespace ? 'application/xml' : unknownMarkup(prolog);
}

function unknownMarkup({ isXml, hasComment }: Prolog): string | undefined {
  if (isXml) return 'application/xml';
  return hasComment ? 'text/html' : undefined;
}

/** The index after a DOCTYPE with its internal subset; -1 if it does not end. */
function endOfDoctype(text: string, from: number): number {
  let quote = '';
  let isInside = false;
  for (let at = from; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (quote === '' && text.startsWith('<!--', at)) {
      const end = endOf('-->', text, at + 4);
      if (end === -1) return -1;
      at = end - 1;
    } else if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === '"' || character === "'") quote = character;
    else if (character === '[') isInside = true;
    else if (character === ']') isInside = false;
    else if (character === '>' && !isInside) return at + 1;
  }
  return -1;
}

function endOf(mark: string, text: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at === -1 ? -1 : at + mark.length;
}

function matchAt(form: RegExp, text: string, at: number): RegExpExecArray | undefined {
  form.lastIndex = at;
  return form.exec(text) ?? undefined;
}

const jsonStart = /^\s*[[{]/;
/** What no other text begins with: an object with a member, or an array of such. */
const jsonCut = /^\s*(?:\[\s*)?\{\s*"[^"\\]{0,200}"\s*:/;

function isJson(text: string, isWhole: boolean): boolean {
  if (!isWhole) return jsonCut.test(text);
  if (!jsonStart.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Text that begins as JSON does, and is none.
    return false;
  }
}
