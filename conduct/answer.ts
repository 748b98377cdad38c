/**
 * Answers of HTTP/1.1, read from the octets of one connection (RFC 9112 §4, §6): interim answers, the final one, and what follows it.
 * The parser is strict where a server has to be, and keeps what is wrong as faults, because they are what a judge looks for.
 */

export type Field = readonly [name: string, value: string];

export type Interim = { readonly status: number; readonly fields: readonly Field[] };

export type Answer = {
  readonly status: number;
  readonly reason: string;
  /** As sent, such as `HTTP/1.1`. */
  readonly version: string;
  readonly fields: readonly Field[];
  readonly content: Buffer;
  /** Answers of 1xx before it. */
  readonly interim: readonly Interim[];
  /** Rules of framing that the answer breaks, a sentence each. */
  readonly faults: readonly string[];
  /** Octets after the end of the answer. */
  readonly rest: Buffer;
};

/** What a request means for the framing of its answer (RFC 9112 §6.3). */
type Asked = { readonly method: string; readonly isEnded: boolean };

type Head = {
  readonly status: number;
  readonly reason: string;
  readonly version: string;
  readonly fields: readonly Field[];
  readonly faults: readonly string[];
  /** Where the content begins. */
  readonly end: number;
};

const statusLine = /^(HTTP\/\d\.\d) (\d{3})(?: (.*))?$/;
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/s;

/** Reads one answer. @returns undefined where more octets are needed; a sentence where they are no answer of HTTP/1 */
export function readAnswer(octets: Buffer, asked: Asked): Answer | string | undefined {
  const interim: Interim[] = [];
  let rest = octets;
  for (;;) {
    const head = readHead(rest);
    if (head === undefined || typeof head === 'string') return head;
    const { status, fields } = head;
    if (status >= 200 || status === 101) return finish(head, rest.subarray(head.end), { asked, interim });
    interim.push({ status, fields });
    rest = rest.subarray(head.end);
  }
}

/** The values of a field, in order. */
export function valuesOf(answer: { readonly fields: readonly Field[] }, name: string): readonly string[] {
  const wanted = name.toLowerCase();
  return answer.fields.filter(([each]) => each.toLowerCase() === wanted).map(([, value]) => value);
}

/** The value of a field, combined as RFC 9110 §5.3 has it. */
export function fieldOf(answer: { readonly fields: readonly Field[] }, name: string): string | undefined {
  const values = valuesOf(answer, name);
  return values.length === 0 ? undefined : values.join(', ');
}

/** The members of a list field, in lower case, without empty ones (RFC 9110 §5.6.1). */
export function listOf(answer: { readonly fields: readonly Field[] }, name: string): readonly string[] {
  return (fieldOf(answer, name) ?? '')
    .split(',')
    .map((each) => each.trim().toLowerCase())
    .filter((each) => each !== '');
}

/** The media type without its parameters, in lower case. */
export function mediaTypeOf(answer: { readonly fields: readonly Field[] }): string | undefined {
  return fieldOf(answer, 'Content-Type')?.split(';')[0]?.trim().toLowerCase();
}

/** The content as JSON, or undefined where it is none. */
export function jsonOf(answer: Pick<Answer, 'content'>): unknown {
  try {
    return JSON.parse(answer.content.toString('utf8'));
  } catch {
    // Content that is not JSON has no value: the caller says what it expected.
    return undefined;
  }
}

export type Members = Readonly<Record<string, unknown>>;

/** True of a JSON object. */
export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readHead(octets: Buffer): Head | string | undefined {
  const end = octets.indexOf('\r\n\r\n');
  if (end === -1) {
    const isOther = octets.length > 0 && !'HTTP/'.startsWith(octets.toString('latin1', 0, 5));
    return isOther
      ? `${JSON.stringify(octets.toString('latin1', 0, 40))} is not an answer of HTTP/1.1`
      : undefined;
  }
  const [first = '', ...lines] = octets.toString('latin1', 0, end).split('\r\n');
  const matched = statusLine.exec(first);
  if (matched === null) return `${JSON.stringify(first.slice(0, 80))} is not a status line (RFC 9112 §4)`;
  const faults: string[] = [];
  const fields = lines.flatMap((line): Field[] => {
    const [, name, value] = fieldLine.exec(line) ?? [];
    if (name !== undefined && value !== undefined) return [[name, value]];
    faults.push(`${JSON.stringify(line.slice(0, 80))} is not a field line (RFC 9112 §5)`);
    return [];
  });
  const [, version = '', status = '', reason = ''] = matched;
  return { version, status: Number(status), reason, fields, faults, end: end + 4 };
}

type Before = { readonly asked: Asked; readonly interim: readonly Interim[] };

function finish(head: Head, octets: Buffer, { asked, interim }: Before): Answer | undefined {
  const faults = [...head.faults, ...framingFaults(head)];
  const { end: _, ...line } = head;
  const make = (content: Buffer, rest: Buffer): Answer => ({ ...line, interim, faults, content, rest });
  const { status } = head;
  const isBare = asked.method === 'HEAD' || status === 204 || status === 304 || status === 101;
  const opensTunnel = asked.method === 'CONNECT' && status >= 200 && status < 300;
  if (isBare || opensTunnel) return make(Buffer.alloc(0), octets);
  if (listOf(head, 'Transfer-Encoding').at(-1) === 'chunked') {
    const chunks = readChunks(octets);
    if (chunks === undefined) {
      if (!asked.isEnded) return undefined;
      faults.push('the connection ended within the chunked content (RFC 9112 §8)');
      return make(octets, Buffer.alloc(0));
    }
    if (typeof chunks === 'string') {
      faults.push(chunks);
      return make(octets, Buffer.alloc(0));
    }
    return make(chunks.content, octets.subarray(chunks.end));
  }
  const length = Number(valuesOf(head, 'Content-Length')[0] ?? Number.NaN);
  if (Number.isSafeInteger(length)) {
    if (octets.length >= length) return make(octets.subarray(0, length), octets.subarray(length));
    if (!asked.isEnded) return undefined;
    faults.push(`the connection ended after ${octets.length} of ${length} octets (RFC 9112 §8)`);
    return make(octets, Buffer.alloc(0));
  }
  // Content without a length ends with the connection.
  return asked.isEnded ? make(octets, Buffer.alloc(0)) : undefined;
}

function framingFaults(head: Head): readonly string[] {
  const lengths = valuesOf(head, 'Content-Length');
  const codings = valuesOf(head, 'Transfer-Encoding');
  const faults: string[] = [];
  if (lengths.some((each) => !/^\d+$/.test(each)) || new Set(lengths).size > 1)
    faults.push(`Content-Length is ${lengths.join(', ')} (RFC 9110 §8.6)`);
  if (lengths.length > 0 && codings.length > 0)
    faults.push('Content-Length and Transfer-Encoding are both sent (RFC 9112 §6.2)');
  if (codings.length > 0 && (head.status === 204 || head.status < 200))
    faults.push(`Transfer-Encoding is sent with ${head.status} (RFC 9112 §6.1)`);
  if (lengths.length > 0 && (head.status === 204 || head.status < 200))
    faults.push(`Content-Length is sent with ${head.status} (RFC 9110 §8.6)`);
  return faults;
}

type Chunks = { readonly content: Buffer; readonly end: number };

/** @returns undefined where more octets are needed; a sentence where they are not chunks (RFC 9112 §7.1) */
function readChunks(octets: Buffer): Chunks | string | undefined {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = octets.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const [, digits] = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?$/i.exec(octets.toString('latin1', at, lineEnd)) ?? [];
    if (digits === undefined) return 'a chunk does not begin with its size (RFC 9112 §7.1)';
    const size = Number.parseInt(digits, 16);
    at = lineEnd + 2;
    if (size === 0) return readTrailers(octets, at, parts);
    if (octets.length < at + size + 2) return undefined;
    if (octets.toString('latin1', at + size, at + size + 2) !== '\r\n')
      return 'a chunk does not end with CRLF (RFC 9112 §7.1)';
    parts.push(octets.subarray(at, at + size));
    at += size + 2;
  }
}

function readTrailers(octets: Buffer, start: number, parts: readonly Buffer[]): Chunks | undefined {
  let at = start;
  for (;;) {
    const lineEnd = octets.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    if (lineEnd === at) return { content: Buffer.concat(parts), end: lineEnd + 2 };
    at = lineEnd + 2;
  }
}
