/**
 * The clients of a fan-out, all in one process on the second processor: opens so many WebSockets, posts events, and says when the last
 * octet of the last of them had come to the last client. Asked and answered as bench/webhooks/part.ts has it.
 */
import { Pool } from 'undici';
import { answerQuestions } from '../webhooks/answer-questions.ts';
import { Subscriber, type SubscriberPlan } from './subscriber.ts';

const readBufferBytes = 1_048_576;
/** Opened at once; more would meet the bound of the accept queue. */
const openingMax = 64;
/** A fan-out takes no longer, or something is wrong. */
const boundMs = 60_000;
const postConnections = 16;

export type SubscribersQuestion =
  | { readonly ask: 'open'; readonly plan: SubscriberPlan; readonly count: number }
  /** Posts so many events at once. */
  | { readonly ask: 'post'; readonly events: number; readonly post: EventPost }
  | { readonly ask: 'end' };
export type EventPost = {
  readonly origin: string;
  readonly path: string;
  readonly authorization: string;
  readonly content: string;
};
export type Opened = { readonly open: number };
/** Milliseconds of one clock. */
export type Posted = {
  readonly startedMs: number;
  /** When the last post was answered. */
  readonly answeredMs: number;
  readonly arrivedMs: number;
  readonly deliveries: number;
  /** Octets of the last event, without the header of its frame. */
  readonly textBytes: number;
  /** Processor time of the clients and the posts, in ms. */
  readonly ownMs: number;
};

const buffer = new Uint8Array(readBufferBytes);
const subscribers: Subscriber[] = [];
let arrived = 0;
let onArrived: (() => void) | undefined;
let onFault: (fault: string) => void = () => undefined;
let fault: string | undefined;
let pool: Pool | undefined;

async function open(plan: SubscriberPlan, count: number): Promise<Opened> {
  let begun = 0;
  const openOne = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const subscriber = new Subscriber(plan, buffer, {
        onSubscribed: resolve,
        onTexts: (texts) => {
          arrived += texts;
          onArrived?.();
        },
        onFault: (text) => {
          fault ??= text;
          onFault(text);
          reject(new Error(text));
        },
      });
      subscribers.push(subscriber);
    });
  const openSome = async (): Promise<void> => {
    while (begun < count) {
      begun += 1;
      await openOne();
    }
  };
  await Promise.all(Array.from({ length: Math.min(openingMax, count) }, openSome));
  return { open: subscribers.length };
}

async function post(events: number, { origin, path, authorization, content }: EventPost): Promise<Posted> {
  if (fault !== undefined) throw new Error(fault);
  pool ??= new Pool(origin, { connections: postConnections, pipelining: 1 });
  const before = process.cpuUsage();
  const deliveries = events * subscribers.length;
  const allArrived = awaitArrivals(deliveries);
  const startedMs = performance.now();
  const headers = { authorization, 'content-type': 'application/json' };
  const answers = Array.from({ length: events }, async () => {
    const { statusCode, body } = await (pool as Pool).request({
      path,
      method: 'POST',
      headers,
      body: content,
    });
    const text = await body.text();
    if (statusCode >= 300) throw new Error(`POST ${path} was answered ${statusCode}: ${text}`);
  });
  const answered = Promise.all(answers).then(() => performance.now());
  const [answeredMs, arrivedMs] = await Promise.all([answered, allArrived]);
  const { user, system } = process.cpuUsage(before);
  const textBytes = subscribers[0]?.textBytes ?? 0;
  return { startedMs, answeredMs, arrivedMs, deliveries, textBytes, ownMs: (user + system) / 1000 };
}

/** @returns when so many more texts had come */
function awaitArrivals(count: number): Promise<number> {
  arrived = 0;
  return new Promise((resolve, reject) => {
    const over = (): void => {
      clearTimeout(bound);
      onArrived = undefined;
      onFault = () => undefined;
    };
    const bound = setTimeout(() => {
      over();
      reject(new Error(`${arrived} of ${count} deliveries came within ${boundMs / 1000} s`));
    }, boundMs);
    onFault = (text) => {
      over();
      reject(new Error(`after ${arrived} of ${count} deliveries: ${text}`));
    };
    onArrived = () => {
      if (arrived < count) return;
      over();
      resolve(performance.now());
    };
  });
}

async function end(): Promise<object> {
  for (const subscriber of subscribers.splice(0)) subscriber.end();
  await pool?.close();
  pool = undefined;
  return {};
}

answerQuestions<SubscribersQuestion>((question) => {
  if (question.ask === 'open') return open(question.plan, question.count);
  return question.ask === 'post' ? post(question.events, question.post) : end();
});
