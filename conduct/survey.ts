/**
 * The survey before the clauses: the methods, patches and queries of the target's collection, and whether it is closed to strangers.
 * Clauses read it to know whether they have a subject; they never judge by it.
 */
import { type Answer, fieldOf, isMembers, jsonOf, listOf, type Members, mediaTypeOf } from './answer.ts';
import { differencesOf, documentIn, operationsOf } from './document.ts';
import { namingLeft } from './patience.ts';
import { changeOf, documentPath, type Target } from './target.ts';
import { CannotApply, NoAnswer, type Survey, Visit } from './visit.ts';

export const mergePatch = 'application/merge-patch+json';
export const jsonPatch = 'application/json-patch+json';

/** The survey of a target of which nothing is known. */
export const unknownSurvey: Survey = {
  ...{
    collectionAllow: undefined,
    memberAllow: undefined,
    member: undefined,
    gone: [],
    cannotCreate: undefined,
  },
  ...{
    patchTypes: new Set<string>(),
    query: undefined,
    queryStatus: undefined,
    isClosed: false,
    closed: undefined,
  },
};

/** A survey, and how to remove the member that it created. */
export type Surveyed = { readonly survey: Survey; readonly remove: () => Promise<readonly string[]> };

export async function surveyTarget(target: Target, mayWrite: boolean): Promise<Surveyed> {
  const visit = new Visit(target, unknownSurvey);
  try {
    return { survey: await readSurvey(visit, mayWrite), remove: visit.end };
  } catch (error) {
    throw namingLeft(error, await visit.end());
  }
}

async function readSurvey(probe: Visit, mayWrite: boolean): Promise<Survey> {
  const { target } = probe;
  const path = target.collection;
  const list = await probe.send({ method: 'GET', path });
  const unreadable = unreadableText(list) ?? (target.sample === undefined ? unlistedText(list) : undefined);
  if (unreadable !== undefined) throw new NoAnswer(`GET ${path} is answered ${list.status}: ${unreadable}`);
  const collectionAllow = allowOf(await probe.send({ method: 'OPTIONS', path }));
  let member = firstMember(target, list);
  let cannotCreate: string | undefined = 'the run may not write';
  if (mayWrite) {
    try {
      member = (await probe.create()).path;
      cannotCreate = undefined;
    } catch (error) {
      if (!(error instanceof CannotApply) && !(error instanceof NoAnswer)) throw error;
      cannotCreate = error.message;
    }
  }
  const options = member === undefined ? undefined : await probe.send({ method: 'OPTIONS', path: member });
  const anonymous = await probe.send({ method: 'GET', path, isAnonymous: true });
  const asked = await findQuery(probe);
  const isClosed = [401, 403].includes(anonymous.status) && list.status < 300;
  return {
    ...{ collectionAllow, member, gone: [], cannotCreate },
    memberAllow: options === undefined ? undefined : allowOf(options),
    patchTypes: await findPatchTypes(probe, { member, cannotCreate, options }),
    ...asked,
    isClosed,
    closed: isClosed ? 'GET' : cannotCreate === undefined ? await closedToWriters(probe) : undefined,
  };
}

/** Why the path is not a collection that can be judged; undefined where it may be one, as without a GET. */
function unreadableText(list: Answer): string | undefined {
  const { status } = list;
  if (status < 300 || status === 405 || status === 501) return undefined;
  if (status < 400)
    return `give the URL that it leads to, ${fieldOf(list, 'Location') ?? 'which it does not name'}`;
  if (status === 401 || status === 403)
    return 'give credentials that may read it, with --header or in the target';
  if (status === 404 || status === 410) return 'give the URL of a collection, or --target FILE';
  return 'the collection cannot be read';
}

/**
 * Why a path without a sample is no collection: its content is a page, or JSON without a list. A target with a sample is one by the word of
 * its file or document.
 */
function unlistedText(list: Answer): string | undefined {
  if (list.status >= 300) return undefined;
  const type = mediaTypeOf(list);
  const value = jsonOf(list);
  const isListed = Array.isArray(value) || (isMembers(value) && Object.values(value).some(Array.isArray));
  const isOther = type !== 'text/html' && !/[/+]json$/.test(type ?? '');
  if (isListed || isOther) return undefined;
  return `its content is ${type}, and no list of documents: give the URL of a collection, or --target FILE`;
}

async function closedToWriters(probe: Visit): Promise<'POST' | undefined> {
  const { status } = await probe.post({ isAnonymous: true });
  return [401, 403].includes(status) ? 'POST' : undefined;
}

function allowOf(answer: Answer): ReadonlySet<string> | undefined {
  if (fieldOf(answer, 'Allow') === undefined) return undefined;
  return new Set(listOf(answer, 'Allow').map((each) => each.toUpperCase()));
}

/** The path of the first document of a list, in the shapes that lists have. */
function firstMember(target: Target, list: Answer): string | undefined {
  const value = jsonOf(list);
  const lists = isMembers(value)
    ? [value.items, value.data, value.results, value.docs, value.value]
    : [value];
  return documentPath(target, lists.find(Array.isArray)?.[0]);
}

type Patchable = {
  readonly member: string | undefined;
  readonly cannotCreate: string | undefined;
  readonly options: Answer | undefined;
};

/** By Accept-Patch (RFC 5789 §3.1), or else by trying. */
async function findPatchTypes(
  probe: Visit,
  { member, cannotCreate, options }: Patchable,
): Promise<ReadonlySet<string>> {
  if (options !== undefined && fieldOf(options, 'Accept-Patch') !== undefined)
    return new Set(listOf(options, 'Accept-Patch').map((each) => each.split(';')[0] ?? each));
  if (member === undefined || probe.target.change === undefined || cannotCreate !== undefined)
    return new Set();
  const found = new Set<string>();
  for (const type of [mergePatch, jsonPatch, 'application/json']) {
    const change = changeOf(probe.target) ?? {};
    const json = type === jsonPatch ? operationsOf(change) : change;
    const answer = await probe.send({
      method: 'PATCH',
      path: member,
      json,
      headers: { 'Content-Type': type },
    });
    // A server may answer 200 to what it does not understand.
    if (answer.status < 300 && (await isMade(probe, member, change))) found.add(type);
  }
  return found;
}

async function isMade(probe: Visit, member: string, change: Members): Promise<boolean> {
  const document = documentIn(
    jsonOf(await probe.send({ method: 'GET', path: member })),
    probe.target.idMember,
  );
  return differencesOf(document, change).length === 0;
}

/** Contents that ask for everything, by the media types that servers take. */
const plainQueries: Readonly<Record<string, string>> = {
  'application/json': '{}',
  'application/x-www-form-urlencoded': 'limit=10',
  'text/plain': '*',
};

/** By the target, by Accept-Query (RFC 10008 §3), or else by trying. */
async function findQuery(probe: Visit): Promise<Pick<Survey, 'query' | 'queryStatus'>> {
  const { query, collection: path } = probe.target;
  const candidates =
    query === undefined ? Object.entries(plainQueries) : [[query.type, query.content] as const];
  let queryStatus: number | undefined;
  for (const [type, content] of candidates) {
    const outcome = await probe.attempt({
      method: 'QUERY',
      path,
      content,
      headers: { 'Content-Type': type },
    });
    if ('none' in outcome) continue;
    queryStatus = outcome.status;
    const isResult = outcome.status >= 200 && outcome.status < 300 && mediaTypeOf(outcome) !== 'text/html';
    if (isResult) return { query: { type, content }, queryStatus };
    if ([405, 501].includes(outcome.status)) break;
  }
  return { query: undefined, queryStatus };
}
