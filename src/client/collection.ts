/**
 * The calls on one collection and its actions. Documents carry the entity tag with which they were read as `etag`, which survives copying: a
 * change is made on the version that its author saw, and merged with what others changed meanwhile.
 */
import { ComityError, ConflictError } from './error.ts';
import { type Answer, type CallOptions, type Send, segment } from './send.ts';
import { type FieldUploadOptions, pick, sendWhole, unknownAnswer, wholeBytesMax } from './upload.ts';

/** A document, as far as its type matters here. */
export type Doc = Readonly<Record<string, unknown>> & { readonly id: string };

/** A query as JSON content has it. */
export type JsonQuery = {
  readonly filter?: Readonly<Record<string, unknown>> | undefined;
  readonly sort?: readonly string[] | undefined;
  readonly q?: string | undefined;
  readonly fields?: readonly string[] | undefined;
  readonly expand?: readonly string[] | undefined;
  readonly counts?: readonly string[] | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly [further: string]: unknown;
};

export type JsonPage = {
  readonly items: readonly Doc[];
  readonly nextCursor: string | null;
  readonly [further: string]: unknown;
};

/** A page, and its place in the event log. */
export type Listed = { readonly page: JsonPage; readonly position: string | null };

/** The parts that all collections of a client share. */
export type Shared = {
  readonly send: Send;
  /** A proxy refused the method QUERY. */
  refusesQuery?: boolean;
  /** Where GET repeats a QUERY, by its content. */
  readonly locations: Map<string, string>;
  /** How fields take files, by `/tickets/photos`. */
  readonly uploadMethods: Map<string, 'PUT' | 'POST'>;
};

type Target = string | Doc;

const mergesMax = 5;
const entityTag = /^"[!#-~]*"$/;
const pageItems = 200;
/** Proxies refuse longer ones. */
const targetCharactersMax = 2_000;
const locationsMax = 100;
/** A proxy that does not know QUERY. Comity itself has it for each collection. */
const refusesMethod: ReadonlySet<number> = new Set([405, 501]);

export class CollectionCalls {
  readonly #shared: Shared;
  readonly #path: string;

  constructor(shared: Shared, path: string) {
    this.#shared = shared;
    this.#path = path;
  }

  async get(id: string, options: JsonQuery & CallOptions = {}): Promise<Doc> {
    const { fields, expand, counts, ...sent } = options;
    const shape = fields ?? expand ?? counts;
    // The ETag field of an answer with other documents is not that of the document alone.
    const query = shape === undefined ? '' : `?${parametersOf({ fields: withTag(fields), expand, counts })}`;
    return tagged(await this.#shared.send('GET', this.#member(id) + query, sent), shape === undefined);
  }

  async list(query: JsonQuery = {}, options: CallOptions = {}): Promise<JsonPage> {
    return (await this.read(query, options)).page;
  }

  async *all(query: JsonQuery = {}, options: CallOptions = {}): AsyncGenerator<Doc> {
    for (let cursor: string | undefined; ; ) {
      const page: JsonPage = await this.list({ limit: pageItems, ...query, cursor }, options);
      yield* page.items;
      if (page.nextCursor === null) return;
      cursor = page.nextCursor;
    }
  }

  /** Reads a page by GET, or by QUERY where a target cannot say the query. */
  async read(query: JsonQuery, options: CallOptions): Promise<Listed> {
    const parameters = parametersOf({ ...query, fields: withTag(query.fields) });
    if (parameters === undefined || parameters.length > targetCharactersMax)
      return this.#query(query, options);
    return listed(await this.#shared.send('GET', `${this.#path}?${parameters}`, options));
  }

  async query(query: JsonQuery, options: CallOptions = {}): Promise<JsonPage> {
    return (await this.#query(query, options)).page;
  }

  /** By GET where the server has named a URL for it, which answers 304; by QUERY; by GET with parameters where a proxy refuses QUERY. */
  async #query(query: JsonQuery, options: CallOptions): Promise<Listed> {
    const { send, locations, refusesQuery } = this.#shared;
    const isAggregate = 'aggregate' in query || 'groupBy' in query;
    const body = isAggregate ? query : { ...query, fields: withTag(query.fields) };
    const key = `${this.#path} ${JSON.stringify(body)}`;
    const location = locations.get(key);
    if (location !== undefined) {
      const answer = await send('GET', location, { ...options, accepts: [404, 410] });
      if (answer.refusal === undefined) return listed(answer);
      // The server keeps the URL of a long query for a day.
      locations.delete(key);
    }
    if (refusesQuery !== true) {
      const answer = await send('QUERY', this.#path, { ...options, body, accepts: [...refusesMethod] });
      if (answer.refusal === undefined) {
        const found = answer.headers.get('Location');
        if (found !== null) locations.set(key, found);
        for (const [oldest] of locations) if (locations.size > locationsMax) locations.delete(oldest);
        return listed(answer);
      }
      this.#shared.refusesQuery = true;
    }
    const parameters = isAggregate ? undefined : parametersOf(body);
    if (parameters !== undefined) return listed(await send('GET', `${this.#path}?${parameters}`, options));
    throw new ComityError(
      'method_not_allowed',
      'a proxy refuses the method QUERY, and a URL cannot say this query',
      {
        status: 405,
      },
    );
  }

  async create(content: unknown, options: CallOptions = {}): Promise<Doc> {
    return tagged(await this.#shared.send('POST', this.#path, { ...options, body: content }));
  }

  async update(
    target: Target,
    change: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<Doc> {
    const { id, base, tag } = read(target);
    let match = tag;
    if (base !== undefined && tag === undefined)
      match = tagOf(await this.#merged(id, { base, change }, options));
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#write('PATCH', id, { ...options, body: change }, match);
      if (answer.refusal === undefined) return tagged(answer);
      if (tries > mergesMax) throw answer.refusal;
      match = tagOf(await this.#merged(id, { base, change }, options));
    }
  }

  /** Reads the document as it is, which the change does not contradict. @throws ConflictError */
  async #merged(id: string, { base, change }: Merging, options: CallOptions): Promise<Doc> {
    const theirs = await this.get(id, options);
    const members = base === undefined ? [] : conflicts(base, change, theirs);
    if (members.length > 0) throw new ConflictError({ base, mine: change, theirs, members });
    return theirs;
  }

  async replace(
    target: Target,
    content: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<Doc> {
    const { id, base, tag } = read(target);
    const { etag, ...rest } = content;
    const body = isTag(etag) ? rest : content;
    const answer = await this.#writeTagged('PUT', id, { ...options, body }, tag);
    if (answer.refusal === undefined) return tagged(answer);
    const theirs = await this.get(id, options);
    // An earlier sending was carried out, and its answer was lost.
    if (answer.sends > 1 && contains(theirs, body)) return theirs;
    throw new ConflictError({ base, mine: content, theirs, members: [] });
  }

  async delete(target: Target, options: CallOptions = {}): Promise<void> {
    const { id, base, tag } = read(target);
    const answer = await this.#writeTagged('DELETE', id, options, tag);
    if (answer.refusal === undefined || (answer.status === 404 && answer.sends > 1)) return;
    if (answer.status === 404) throw answer.refusal;
    throw new ConflictError({ base, mine: null, theirs: await this.get(id, options), members: [] });
  }

  async upload(
    target: Target,
    field: string,
    file: Blob,
    options: FieldUploadOptions = {},
  ): Promise<unknown> {
    const { send } = this.#shared;
    const { id } = read(target);
    const path = `${this.#member(id)}/${segment(field)}`;
    const method = await this.#uploadMethod(field, path, options);
    if (file.size <= wholeBytesMax) return sendWhole(send, [method, path], file, options);
    const collection = this.#path.slice(1);
    const { sendChunks } = await import('./upload-chunks.ts');
    return sendChunks(send, file, options, {
      ...{ address: path, target: { collection, field } },
      take: (uploadId) => this.#attach(id, { field, path, uploadId, isList: method === 'POST' }, options),
    });
  }

  /** PUT of a field that holds a file, POST to a list of files, which only the server knows. */
  async #uploadMethod(field: string, path: string, options: CallOptions): Promise<'PUT' | 'POST'> {
    const { send, uploadMethods } = this.#shared;
    const name = `${this.#path}/${field}`;
    const known = uploadMethods.get(name);
    if (known !== undefined) return known;
    const { headers } = await send('OPTIONS', path, pick(options));
    const method = headers.get('Allow')?.includes('PUT') === false ? 'POST' : 'PUT';
    uploadMethods.set(name, method);
    return method;
  }

  /** Names a finished upload in a document, on the version of now. @returns the file */
  async #attach(
    id: string,
    attached: Attached,
    { ifMatch, ...options }: FieldUploadOptions,
  ): Promise<unknown> {
    const { field, path, uploadId, isList } = attached;
    const sent = pick(options);
    for (let tries = 1; ; tries += 1) {
      const document = await this.get(id, sent);
      if (ifMatch !== undefined) {
        const headers = { 'If-Match': ifMatch };
        const { status } = await this.#shared.send('HEAD', path, { ...sent, headers, accepts: [404, 412] });
        if (status >= 400)
          throw new ComityError('precondition_failed', `${field} was changed`, { status: 412 });
      }
      const upload = { upload: uploadId };
      const kept = [document[field] ?? []].flat().map((each) => ({ id: (each as Doc).id }));
      const body = { [field]: isList ? [...kept, upload] : upload };
      const answer = await this.#write('PATCH', id, { ...sent, body }, tagOf(document));
      if (answer.refusal === undefined) {
        const files = [(answer.body as Doc)[field]].flat();
        const made = files.find((each) => isObject(each) && each.id === uploadId);
        if (made === undefined) throw unknownAnswer('is not the document with the file');
        return made;
      }
      if (tries > mergesMax) throw answer.refusal;
    }
  }

  /** Writes; where the collection demands a tag and the caller gave an id, on the version of now. */
  async #writeTagged(
    method: 'PUT' | 'DELETE',
    id: string,
    sent: Writing,
    tag: string | undefined,
  ): Promise<Answer> {
    const answer = await this.#write(method, id, sent, tag);
    const { body: _, ...options } = sent;
    return answer.status === 428 ? this.#write(method, id, sent, tagOf(await this.get(id, options))) : answer;
  }

  async #write(method: string, id: string, { headers, ...sent }: Writing, tag?: string): Promise<Answer> {
    const condition = tag === undefined ? {} : { 'If-Match': tag };
    const accepts = [412, ...(tag === undefined ? [428] : []), ...(method === 'DELETE' ? [404] : [])];
    return this.#shared.send(method, this.#member(id), {
      ...sent,
      accepts,
      headers: { ...condition, ...headers },
    });
  }

  #member(id: string): string {
    return `${this.#path}/${segment(id)}`;
  }
}

type Attached = {
  readonly field: string;
  /** Path of the field. */
  readonly path: string;
  readonly uploadId: string;
  readonly isList: boolean;
};
type Writing = CallOptions & { readonly body?: unknown };
type Merging = { readonly base: Doc | undefined; readonly change: Readonly<Record<string, unknown>> };

function read(target: Target): { id: string; base: Doc | undefined; tag: string | undefined } {
  if (typeof target === 'string') return { id: target, base: undefined, tag: undefined };
  return { id: target.id, base: target, tag: tagOf(target) };
}

/** A field of the application may have the name. */
function isTag(value: unknown): value is string {
  return typeof value === 'string' && entityTag.test(value);
}

function tagOf({ etag }: Doc): string | undefined {
  return isTag(etag) ? etag : undefined;
}

function tagged({ headers, body }: Answer, isAlone = true): Doc {
  const etag = isAlone ? headers.get('ETag') : null;
  return etag === null ? (body as Doc) : { ...(body as Doc), etag };
}

function listed({ headers, body }: Answer): Listed {
  return { page: body as JsonPage, position: headers.get('Comity-Position') };
}

function withTag(fields: readonly string[] = ['*']): readonly string[] {
  return [...new Set([...fields, 'etag'])];
}

/** The members that a change and others changed in different ways. */
function conflicts(base: unknown, change: object, theirs: unknown, above = ''): readonly string[] {
  return Object.entries(change).flatMap(([name, mine]) => {
    const [before, now] = [memberOf(base, name), memberOf(theirs, name)];
    if (isSame(before, now)) return [];
    if (isObject(mine) && isObject(now)) return conflicts(before, mine, now, `${above}${name}.`);
    return isSame(mine ?? undefined, now) ? [] : [above + name];
  });
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? (value[name] ?? undefined) : undefined;
}

function contains(theirs: object, content: object): boolean {
  return Object.entries(content).every(([name, value]) => isSame(memberOf(theirs, name), value ?? undefined));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Equal as JSON, whatever the order of members. */
export function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return one === other;
  const names = Object.keys(one);
  return (
    Array.isArray(one) === Array.isArray(other) &&
    names.length === Object.keys(other).length &&
    names.every((name) => isSame((one as never)[name], (other as never)[name]))
  );
}

// A query as the parameters of a URL.

const ownParameters: ReadonlySet<string> = new Set([
  ...[
    'page',
    'limit',
    'per_page',
    'cursor',
    'sort',
    'order',
    'q',
    'fields',
    'expand',
    'counts',
    'api_key',
    'after',
  ],
]);

/** @returns undefined if a URL cannot say it: `or`, `not`, and null in lists */
export function parametersOf({ filter = {}, ...query }: JsonQuery): string | undefined {
  const pairs: string[] = [];
  const add = (name: string, value: unknown): void => {
    pairs.push(`${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  };
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) add(name, Array.isArray(value) ? value.join(',') : value);
  }
  for (const [name, condition] of Object.entries(filter)) {
    if (condition === undefined) continue;
    if (name === 'and' || name === 'or' || name === 'not') return undefined;
    const operators = isObject(condition) ? condition : { eq: condition };
    for (const [operator, value] of Object.entries(operators)) {
      if (value === undefined) continue;
      if (operator === 'in') {
        if (!Array.isArray(value) || value.length === 0 || value.includes(null)) return undefined;
        for (const each of value) add(equals(name), each);
      } else if (value === null) {
        if (operator !== 'eq' && operator !== 'ne') return undefined;
        add(`${name}[null]`, operator === 'eq');
      } else add(operator === 'eq' ? equals(name) : `${name}[${operator}]`, value);
    }
  }
  return pairs.join('&');
}

function equals(name: string): string {
  return ownParameters.has(name) ? `${name}[eq]` : name;
}

// Actions.

/** Calls an action: `POST /merge` below the member or the collection. @param args the id of a member, the input, options */
export async function callAction(
  send: Send,
  above: string,
  route: string,
  args: readonly unknown[],
): Promise<unknown> {
  const [method = '', path = ''] = route.split(' ');
  const [id, input, options] = typeof args[0] === 'string' ? args : [undefined, ...args];
  const { captures = {}, ...sent } = (options ?? {}) as CallOptions & { captures?: Record<string, string> };
  const named = path.replace(/\{([^}]*)\}/g, (_, name: string) => segment(captures[name] ?? ''));
  const target = (id === undefined ? above : `${above}/${segment(id as string)}`) + named;
  if (method !== 'GET' && method !== 'DELETE') {
    const { body } = await send(method, target, {
      ...sent,
      body: input === undefined ? undefined : formed(input),
    });
    return body;
  }
  const parameters = Object.entries(input ?? {}).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, String(each)]),
  );
  const query = parameters.length === 0 ? '' : `?${new URLSearchParams(parameters as string[][])}`;
  return (await send(method, target + query, sent)).body;
}

/** Files make it a form (RFC 7578). */
function formed(input: unknown): unknown {
  if (
    !isObject(input) ||
    !Object.values(input)
      .flat()
      .some((value) => value instanceof Blob)
  )
    return input;
  const form = new FormData();
  for (const [name, value] of Object.entries(input))
    for (const each of [value].flat())
      if (each instanceof Blob) form.append(name, each);
      else if (each !== undefined) form.append(name, isObject(each) ? JSON.stringify(each) : String(each));
  return form;
}
