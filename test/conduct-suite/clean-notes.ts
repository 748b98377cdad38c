/**
 * The smallest API that every clause of the suite holds of, as a function of one request: notes in memory, with conditions, patches, QUERY
 * and keys of idempotency. It shows that the suite asks for nothing that only Comity does. `clean-server.ts` serves it.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export const cleanToken = 'clean-token-123';

type Document = Readonly<Record<string, unknown>>;

type Note = {
  readonly document: Document;
  readonly revision: number;
  readonly modified: string;
};

export type Answer = {
  readonly status: number;
  readonly fields?: Readonly<Record<string, string>>;
  readonly json?: unknown;
};

export type Asked = {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly fields: IncomingHttpHeaders;
  readonly content: Buffer;
};

const methodsOfAll = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'];
const allowOf = {
  collection: 'GET, HEAD, POST, OPTIONS, QUERY',
  member: 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS',
};
const acceptOf = {
  'Accept-Patch': 'application/merge-patch+json, application/json-patch+json',
  'Accept-Query': '"application/json"',
};

/** One collection, `/notes`, closed to strangers. */
export class CleanNotes {
  readonly #notes = new Map<string, Note>();
  readonly #answered = new Map<string, { readonly content: string; readonly answer: Answer }>();
  readonly #queries = new Set<string>();

  answer = (asked: Asked): Answer => {
    const { method, path, fields } = asked;
    if (!methodsOfAll.includes(method)) return problem(501, 'unknown method');
    if (path === '*') return { status: 204, fields: { Allow: methodsOfAll.join(', ') } };
    const id = /^\/notes\/([^/]+)$/.exec(path)?.[1];
    if (path !== '/notes' && id === undefined) return problem(404, 'not found');
    if (/%(?![0-9a-f]{2})/i.test(path)) return problem(400, 'malformed');
    const token = /^bearer (.*)$/i.exec(fields.authorization ?? '')?.[1] ?? fields['x-api-key'];
    if (token !== cleanToken && method !== 'OPTIONS')
      return problem(401, 'credentials', { 'WWW-Authenticate': 'Bearer realm="notes"' });
    if (!acceptable(fields.accept)) return problem(406, 'not acceptable');
    return id === undefined ? this.#collection(asked) : this.#member(asked, id);
  };

  #collection(asked: Asked): Answer {
    const { method, query } = asked;
    if (method === 'OPTIONS') return { status: 204, fields: { Allow: allowOf.collection, ...acceptOf } };
    if (method === 'GET' || method === 'HEAD') {
      const key = /^q=(\w+)$/.exec(query)?.[1];
      return conditional(asked, this.#list(key !== undefined && this.#queries.has(key) ? key : ''));
    }
    if (method === 'QUERY') return this.#query(asked);
    if (method === 'POST') return this.#create(asked);
    return problem(405, 'method not allowed', { Allow: allowOf.collection });
  }

  #query(asked: Asked): Answer {
    const type = asked.fields['content-type']?.split(';')[0];
    if (type === undefined) return problem(400, 'Content-Type is required');
    if (type !== 'application/json') return problem(415, 'unsupported', acceptOf);
    if (parsed(asked.content) === undefined) return problem(400, 'malformed');
    const key = digest(asked.content.toString());
    this.#queries.add(key);
    const found = this.#list(key);
    const location = `/notes?q=${key}`;
    return conditional(asked, {
      ...found,
      fields: { ...found.fields, Location: location, 'Content-Location': location },
    });
  }

  #create(asked: Asked): Answer {
    const refused = refuseContent(asked, ['application/json']);
    if (refused !== undefined) return refused;
    const content = asked.content.toString();
    const key = String(asked.fields['idempotency-key'] ?? '');
    const before = this.#answered.get(key);
    if (before !== undefined)
      return before.content === content ? before.answer : problem(422, 'other content');
    const document = JSON.parse(content);
    if (typeof document.title !== 'string') return problem(422, 'title is required');
    const id = randomUUID();
    const { fields, json } = shown(this.#keep(id, document));
    const answer = { status: 201, fields: { ...fields, Location: `/notes/${id}` }, json };
    if (key !== '') this.#answered.set(key, { content, answer });
    return answer;
  }

  #member(asked: Asked, id: string): Answer {
    const { method, fields } = asked;
    if (method === 'OPTIONS') return { status: 204, fields: { Allow: allowOf.member, ...acceptOf } };
    if (!allowOf.member.includes(method))
      return problem(405, 'method not allowed', { Allow: allowOf.member });
    const isWritten = method === 'PUT' || method === 'PATCH';
    const types = method === 'PUT' ? ['application/json'] : acceptOf['Accept-Patch'].split(', ');
    const refused = isWritten ? refuseContent(asked, types) : undefined;
    if (refused !== undefined) return refused;
    if (fields['content-range'] !== undefined && method === 'PUT') return problem(400, 'Content-Range');
    const note = this.#notes.get(id);
    if (note === undefined)
      return fields['if-match'] === undefined ? problem(404, 'not found') : problem(412, 'missing');
    const failed = precondition(asked, note);
    if (failed?.status === 304) return { ...shown(note), status: 304, json: undefined };
    if (failed !== undefined) return failed;
    if (method !== 'DELETE') return isWritten ? this.#change(asked, id, note) : shown(note);
    this.#notes.delete(id);
    return { status: 204 };
  }

  #change({ method, fields, content }: Asked, id: string, { document }: Note): Answer {
    const value = parsed(content);
    const isPatch = fields['content-type'] === 'application/json-patch+json';
    const rest = method === 'PUT' ? {} : document;
    const changed = isPatch ? patched(document, value) : { ...rest, ...(value as Document) };
    return changed === undefined
      ? problem(422, 'the patch cannot be applied')
      : shown(this.#keep(id, changed));
  }

  #list(key: string): Answer {
    const json = { items: [...this.#notes.values()].map(({ document }) => document) };
    return { status: 200, fields: { ETag: tagOf([json, key]), 'Cache-Control': 'private, no-cache' }, json };
  }

  #keep(id: string, document: Document): Note {
    const revision = (this.#notes.get(id)?.revision ?? 0) + 1;
    const note = { document: { ...document, id }, revision, modified: new Date().toUTCString() };
    this.#notes.set(id, note);
    return note;
  }
}

function problem(status: number, title: string, fields: Readonly<Record<string, string>> = {}): Answer {
  const json = { type: 'about:blank', title, status };
  return { status, fields: { ...fields, 'Content-Type': 'application/problem+json' }, json };
}

function digest(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

function tagOf(value: unknown): string {
  return `"${digest(JSON.stringify(value))}"`;
}

function shown({ document, revision, modified }: Note): Answer {
  const fields = {
    ETag: tagOf([document, revision]),
    'Last-Modified': modified,
    'Cache-Control': 'private, no-cache',
  };
  return { status: 200, fields, json: document };
}

/** @returns 412 or 304, or undefined where the request goes on (RFC 9110 §13.2.2) */
function precondition({ method, fields }: Asked, note: Note): Answer | undefined {
  const tag = shown(note).fields?.ETag ?? '';
  const names = (value: string): readonly string[] => value.split(',').map((each) => each.trim());
  const match = fields['if-match'];
  const since = fields['if-unmodified-since'];
  if (match !== undefined) {
    if (match !== '*' && !names(match).includes(tag)) return problem(412, 'stale');
  } else if (since !== undefined && Date.parse(note.modified) > Date.parse(since))
    return problem(412, 'changed since');
  const none = fields['if-none-match'];
  const isRead = method === 'GET' || method === 'HEAD';
  const modifiedSince = fields['if-modified-since'];
  if (none !== undefined) {
    const isSame = names(none).some((each) => each === '*' || each.replace('W/', '') === tag);
    if (isSame) return isRead ? { status: 304 } : problem(412, 'exists');
  } else if (isRead && modifiedSince !== undefined && Date.parse(modifiedSince) >= Date.parse(note.modified))
    return { status: 304 };
  return undefined;
}

function conditional({ fields }: Asked, answer: Answer): Answer {
  const tags = String(fields['if-none-match'] ?? '').split(',');
  const isSame = tags.some((each) => each.trim().replace('W/', '') === answer.fields?.ETag);
  return isSame ? { ...answer, status: 304, json: undefined } : answer;
}

function refuseContent({ fields, content }: Asked, types: readonly string[]): Answer | undefined {
  const type = String(fields['content-type'] ?? '').split(';')[0] ?? '';
  if (fields['content-encoding'] !== undefined)
    return problem(415, 'coding', { 'Accept-Encoding': 'identity' });
  if (!types.includes(type)) return problem(415, 'unsupported', acceptOf);
  const value = parsed(content);
  if (value === undefined) return problem(400, 'malformed');
  return Array.isArray(value) && !type.includes('json-patch') ? problem(422, 'must be an object') : undefined;
}

function acceptable(accept: string | undefined): boolean {
  const ranges = (accept ?? '*/*').split(',').map((each) => each.split(';')[0]?.trim() ?? '');
  const isMalformed = ranges.some((each) => !/^[\w*+.-]+\/[\w*+.-]+$/.test(each));
  return (
    isMalformed ||
    ranges.some((each) => ['*/*', 'application/*', 'application/json', 'text/html'].includes(each))
  );
}

function parsed(content: Buffer): unknown {
  try {
    return JSON.parse(content.toString());
  } catch {
    // Malformed content is refused by the caller.
    return undefined;
  }
}

type Operation = { readonly op: string; readonly path: string; readonly value: unknown };

/** `test` and `replace` of members alone; everything else is refused. */
function patched(
  document: Record<string, unknown>,
  operations: unknown,
): Record<string, unknown> | undefined {
  if (!Array.isArray(operations)) return undefined;
  let current = document;
  for (const { op, path, value } of operations as Operation[]) {
    const name = path?.slice(1) ?? '';
    if (!(name in current) || (op !== 'test' && op !== 'replace')) return undefined;
    if (op === 'test' && JSON.stringify(current[name]) !== JSON.stringify(value)) return undefined;
    current = op === 'replace' ? { ...current, [name]: value } : current;
  }
  return current;
}
