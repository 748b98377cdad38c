/**
 * The target of a run: the server, one collection of it, a sample document and a change, from a file or from an OpenAPI document.
 */
import { readFile } from 'node:fs/promises';
import { isMembers, jsonOf } from './answer.ts';
import { type Origin, openConnection, reasonOf } from './connection.ts';
import { idOf } from './document.ts';
import { type Collection, describedCollections } from './openapi.ts';
import { type Patience, patienceMsMax, withPatience } from './patience.ts';
import { requestText } from './request.ts';

export type Target = Collection & {
  readonly address: Origin;
  /** Scheme and authority, such as `http://127.0.0.1:4000`. */
  readonly url: string;
  /** The Host field. */
  readonly host: string;
  /** Fields of every request that is not anonymous; their values stand in no report. */
  readonly headers: Readonly<Record<string, string>>;
  /** The member of a document that names it in its path. */
  readonly idMember: string;
  /** What the run may still wait where the server limits requests; targets of one run share it. */
  readonly patience: Patience;
};

/** A mistake in the command line or in the target's file, for its author. */
export class TargetMistake extends Error {}

export type TargetOptions = {
  /** The path of a file like `{"collection": "/notes", "sample": {"title": "A"}, "change": {"title": "B"}, "headers": {}}`. */
  readonly file?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly isInsecure?: boolean | undefined;
};

/** Where frameworks put their OpenAPI document. */
const documentPaths = [
  '/openapi.json',
  '/api/openapi.json',
  '/swagger.json',
  '/openapi',
  '/documentation/json',
  '/api-json',
  '/docs/json',
  '/swagger/v1/swagger.json',
  '/v3/api-docs',
] as const;

/**
 * Returns the collections that could be judged, the most likely first.
 * @throws TargetMistake
 */
export async function findTargets(written: string, options: TargetOptions): Promise<readonly Target[]> {
  const file = options.file === undefined ? {} : await readTargetFile(options.file);
  const server = { ...targetAt(written, options), idMember: file.idMember ?? 'id' };
  const headers = { ...file.headers, ...server.headers };
  const url = new URL(written);
  if (file.collection !== undefined) {
    const path = URL.parse(file.collection, url)?.pathname ?? file.collection;
    return [{ ...server, headers, ...pick(file), collection: path }];
  }
  const given = { ...server, headers, ...pick(file) };
  const isNamed = url.pathname !== '/';
  const found = isNamed ? await findNamed(given) : await findDescribed(given);
  if (found.length > 0) return found.map((each) => ({ ...given, ...each, ...pick(file) }));
  throw new TargetMistake(
    `${url.origin} has no OpenAPI document that names a collection: give the URL of one, of a collection, or --target FILE`,
  );
}

/**
 * The collections of the document at the path of the URL, or else the path itself: the survey refuses it where it is none, and no other takes
 * its place. A document elsewhere may say what it takes.
 */
async function findNamed(given: Target): Promise<readonly Collection[]> {
  if (given.sample !== undefined) return [given];
  const { status, json } = await readJson(given, given.collection);
  const own = describedCollections(json);
  if (own.length > 0) return own;
  const mayBeCollection = status < 300 || status === 405;
  const described = mayBeCollection ? await findDescribed(given) : [];
  return [{ ...described.find(isAt(given.collection)), collection: given.collection }];
}

/** The collections of the first document that names some. */
async function findDescribed(server: Target): Promise<readonly Collection[]> {
  for (const path of documentPaths) {
    const { status, json } = await readJson(server, path);
    if (status >= 500)
      throw new TargetMistake(
        `GET ${path} is answered ${status}, so an OpenAPI document may be there or not: try again, or describe a collection with --target FILE`,
      );
    const found = describedCollections(json);
    if (found.length > 0) return found;
  }
  return [];
}

function isAt(path: string): (described: Collection) => boolean {
  const bare = (each: string): string => each.replace(/\/?(?:\?.*)?$/, '');
  return ({ collection }) => bare(collection) === bare(path);
}

/** The target at a URL, whose path is taken for a collection. @throws TargetMistake */
export function targetAt(written: string, { headers = {}, isInsecure = false }: TargetOptions): Target {
  const url = URL.parse(written);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new TargetMistake(`${written} is not an http or https URL`);
  const scheme = url.protocol === 'https:' ? 'https' : 'http';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port) || (scheme === 'https' ? 443 : 80);
  return {
    address: { scheme, host, port, isInsecure },
    ...{
      url: url.origin,
      host: url.host,
      headers,
      idMember: 'id',
      collection: `${url.pathname}${url.search}`,
      patience: { leftMs: patienceMsMax },
    },
  };
}

/** The path of a URI reference in an answer; undefined where it is none. */
export function pathOf({ url, collection }: Target, reference: string): string | undefined {
  const resolved = URL.parse(reference, `${url}${collection}`);
  return resolved === null ? undefined : `${resolved.pathname}${resolved.search}`;
}

/** The path of a member. @param segment its id, with what a path cannot have encoded */
export function memberPath({ collection }: Target, segment: string): string {
  return `${collection.replace(/\/?(?:\?.*)?$/, '')}/${segment}`;
}

/** The path of a member by the id in its document; undefined where it has none. */
export function documentPath(target: Target, document: unknown): string | undefined {
  const id = idOf(document, target.idMember);
  return id === undefined ? undefined : memberPath(target, encodeURIComponent(id));
}

/** A new document from the sample, with a token of its own in each `{random}`. */
export function sampleOf({ sample }: Target): Readonly<Record<string, unknown>> | undefined {
  return sample === undefined ? undefined : (expand(sample) as Readonly<Record<string, unknown>>);
}

/** The change, as a merge patch. */
export function changeOf({ change }: Target): Readonly<Record<string, unknown>> | undefined {
  return change === undefined ? undefined : (expand(change) as Readonly<Record<string, unknown>>);
}

function expand(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('{random}', () => randomToken());
  if (Array.isArray(value)) return value.map(expand);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, expand(each)]));
}

/** Eight letters and digits. */
export function randomToken(): string {
  return Math.random().toString(36).slice(2, 10).padEnd(8, '0');
}

type TargetFile = Partial<Collection> & {
  readonly headers?: Readonly<Record<string, string>>;
  readonly idMember?: string;
};

const fileMembers: Readonly<Record<string, (value: unknown) => boolean>> = {
  collection: (value) => typeof value === 'string',
  sample: isMembers,
  change: isMembers,
  headers: (value) => isMembers(value) && Object.values(value).every((each) => typeof each === 'string'),
  query: (value) => isMembers(value) && typeof value.type === 'string' && typeof value.content === 'string',
  idMember: (value) => typeof value === 'string',
  origin: (value) => typeof value === 'string' && URL.parse(value)?.origin === value,
  websocket: (value) => typeof value === 'string' && value.startsWith('/'),
  tunnel: (value) => isMembers(value) && typeof value.destination === 'string',
};

async function readTargetFile(path: string): Promise<TargetFile> {
  let file: unknown;
  try {
    file = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new TargetMistake(`${path} cannot be read as JSON: ${reasonOf(error)}`);
  }
  if (!isMembers(file))
    throw new TargetMistake(`${path} must be an object with collection, sample, change, headers`);
  for (const [name, value] of Object.entries(file)) {
    const isRight = fileMembers[name];
    if (isRight === undefined)
      throw new TargetMistake(
        `${path}: ${name} is unknown; known are ${Object.keys(fileMembers).join(', ')}`,
      );
    if (!isRight(value)) throw new TargetMistake(`${path}: ${name} has the wrong type`);
  }
  return file;
}

/** What a file without a collection adds to one that an OpenAPI document names. */
function pick({ collection: _, headers: __, idMember: ___, ...others }: TargetFile): Partial<Collection> {
  return others;
}

/** The content of a 200 as JSON, if it is some. @throws TargetMistake, Limited */
async function readJson(
  { address, host, headers, patience }: Target,
  path: string,
): Promise<{ readonly status: number; readonly json: unknown }> {
  const server = { host, headers: { Accept: 'application/json', ...headers } };
  const outcome = await withPatience(patience, `GET ${path}`, async () => {
    const connection = await openConnection(address).catch((error: unknown) => {
      throw new TargetMistake(`no connection to ${host}: ${reasonOf(error)}`);
    });
    connection.write(requestText(server, { method: 'GET', path }));
    const answer = await connection.answer('GET');
    connection.close();
    return answer;
  });
  // A server that answers one of these paths not at all would take the whole wait for each of the others, too.
  if ('none' in outcome) throw new TargetMistake(`${host} gives no answer to GET ${path}: ${outcome.none}`);
  const json = outcome.status === 200 ? jsonOf(outcome) : undefined;
  return { status: outcome.status, json };
}
