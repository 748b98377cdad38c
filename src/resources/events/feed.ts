/**
 * The feed (§6.15): `GET /events?after=CURSOR` reads the log page by page in the order of commits, with the messages of the stream as items.
 * `nextCursor` is the position up to which the log was read: it passes over events that the caller may not see, so a page may be short or
 * empty while more follow, and a client that goes on from it misses nothing.
 *
 * With `Prefer: wait` an empty page is held, as content that is produced later (stream.ts has its modes).
 */
import type { ContentSink, RequestMemory } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import { formatLink } from '../../http/syntax/link.ts';
import { formatQueryString, parseQueryString } from '../../http/syntax/query-string.ts';
import type { Representation } from '../../kernel/resource.ts';
import { type LogPosition, StoreUnavailable } from '../../store/store.ts';
import { withoutBrackets } from '../query/selection.ts';
import type { Batch } from './shared-batches.ts';
import {
  batchesReserved,
  createPieceWriter,
  type Follower,
  followBatches,
  readStanding,
  type SharedLog,
} from './stream.ts';

export type FeedQuery = {
  /** A place in the log; `now`; or empty for the oldest event. */
  readonly after: string;
  /** The query string without it. */
  readonly rest: string;
};

/** Parameters of lists that the feed cannot have: its order and its position are given. */
const refused: ReadonlySet<string> = new Set(['cursor', 'order', 'page', 'sort']);

/** @returns undefined if the query is none of the feed */
export function readFeedQuery(query: string): FeedQuery | { readonly problem: Problem } | undefined {
  if (!query.includes('after')) return undefined;
  const pairs = parseQueryString(query) ?? [];
  const [found, ...others] = pairs.filter(([name]) => name === 'after');
  if (found === undefined) return undefined;
  if (others.length > 0) return malformed('after is given more than once');
  const [other] = pairs.find(([name]) => refused.has(withoutBrackets(name))) ?? [];
  if (other !== undefined)
    return malformed(`after reads the log in the order of commits; leave out ${other}`);
  return { after: found[1], rest: formatQueryString(pairs.filter(([name]) => name !== 'after')) };
}

/** Parameters of lists that a stream cannot have: it sends each event once, in the order of commits, without an end. */
const refusedByStreams: ReadonlySet<string> = new Set([...refused, 'limit', 'per_page']);

/** @returns undefined if a stream can carry out the query, as far as its parameters decide */
export function streamProblem(query: string): Problem | undefined {
  const [given] =
    (parseQueryString(query) ?? []).find(([name]) => refusedByStreams.has(withoutBrackets(name))) ?? [];
  if (given === undefined) return undefined;
  return malformed(`a stream sends every event in the order of commits; leave out ${given}`).problem;
}

function malformed(message: string): { readonly problem: Problem } {
  return { problem: { code: 'query_parameter_invalid', message } };
}

type FeedReading = {
  readonly from: LogPosition;
  readonly rest: string;
  /** Seconds for which an empty page may be held; 0: it is answered at once. */
  readonly waitSeconds: number;
  readonly memory: RequestMemory | undefined;
};

/** Stretches of the log that one request looks at, and the time after which it looks at no further one. */
const stretchesMax = 8;
const lookingMs = 500;
/** A longer link would not fit the fields that proxies take. */
const linkCharactersMax = 1_500;

/** @throws StoreUnavailable */
export async function readFeed(
  log: SharedLog,
  follower: Follower,
  path: string,
  asked: FeedReading,
): Promise<Representation> {
  const { limits, places } = log;
  const { memory, rest, waitSeconds } = asked;
  const reserved = batchesReserved * limits.batchBytesMax;
  if (memory?.hold(reserved) === false) {
    throw new StoreUnavailable('the memory budget for reading events is used up', { retryAfterSeconds: 1 });
  }
  let batch: Batch;
  try {
    batch = await readOn(log, follower, asked.from);
  } finally {
    memory?.giveBack(reserved);
  }
  const { octets, to, isFull } = batch;
  const isHeld = octets.length === 0 && !isFull && waitSeconds > 0;
  const target = `${path}?${rest === '' ? '' : `${rest}&`}after=${places.textOf(to)}`;
  const isLinked = isFull && target.length <= linkCharactersMax;
  return {
    content: isHeld
      ? { open: (sink) => hold(log, follower, { from: to, waitSeconds }, sink) }
      : pageOf(octets, places.textOf(to)),
    mediaType: 'application/json',
    validators: { tag: null, modifiedAt: null },
    cacheControl: 'no-store',
    // More is known to follow: the client need not wait before it asks again.
    ...(isLinked ? { fields: ['Link', formatLink([{ target, rel: 'next' }])] } : {}),
    ...(waitSeconds > 0 ? { preferencesApplied: [['wait', String(waitSeconds)]] as const } : {}),
  };
}

/** Reads until something is found, as far as one request may look. */
async function readOn(log: SharedLog, follower: Follower, from: LogPosition): Promise<Batch> {
  const began = performance.now();
  let batch = await readStanding(log, follower, from);
  for (let read = 1; read < stretchesMax; read += 1) {
    const isOver = batch.octets.length > 0 || !batch.isFull || performance.now() - began > lookingMs;
    if (isOver) break;
    batch = await readStanding(log, follower, batch.to);
  }
  return batch;
}

function pageOf(items: Uint8Array, nextCursor: string): Uint8Array {
  return Buffer.concat([Buffer.from('{"items":['), items, Buffer.from(`],"nextCursor":"${nextCursor}"}`)]);
}

const nothing = new Uint8Array(0);

/** Holds an empty page until something follows, at the latest until the time is up, the credential ends or the server drains. */
function hold(
  log: SharedLog,
  follower: Follower,
  { from, waitSeconds }: Pick<FeedReading, 'from' | 'waitSeconds'>,
  sink: ContentSink,
): () => void {
  let position = from;
  let open = true;
  const writer = createPieceWriter(sink, log.turns);
  const leave = follower.enter(writer.octets);
  // After a failure, the client asks again and learns of it then.
  const giveUp = (): void => end(nothing);
  const timer = setTimeout(giveUp, waitSeconds * 1000);
  timer.unref();
  const following = followBatches(log, follower, sink, {
    ...{ from, fail: giveUp },
    take({ octets, to }, goOn) {
      position = to;
      if (octets.length > 0) return end(octets);
      sink.memory.set(0);
      goOn();
    },
  });

  function end(items: Uint8Array): void {
    if (!stop()) return;
    const page = pageOf(items, log.places.textOf(position));
    sink.memory.share(page);
    writer.write(page, () => sink.end());
  }

  /** False if it was over. */
  function stop(): boolean {
    if (!open) return false;
    open = false;
    clearTimeout(timer);
    following.stop();
    leave();
    return true;
  }

  following.start();
  return () => {
    // The last words of a server that drains; a client that has left gets none.
    if (stop()) sink.write(pageOf(nothing, log.places.textOf(position)));
    writer.close();
  };
}
