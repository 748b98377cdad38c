/** Followers of the feed of events (`GET {base}/events?after=`), which read page after page. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { base } from './account-client.ts';

type Headers = Readonly<Record<string, string>>;

export type FeedPage = {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly nextCursor: string;
  readonly headers: globalThis.Headers;
};

/** @param url of the program */
export async function readFeed(url: string, query: string, headers: Headers): Promise<FeedPage> {
  const answer = await fetch(`${url}${base}/events?${query}`, { headers });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { items, nextCursor } = JSON.parse(text) as FeedPage;
  assert.equal(typeof nextCursor, 'string');
  return { items, nextCursor, headers: answer.headers };
}

/** What a message of the feed or of the stream is about: the id of the event, or the text of another message. */
export function nameOf(message: Readonly<Record<string, unknown>>): string {
  return typeof message.id === 'string' ? message.id : JSON.stringify(message);
}

/**
 * Follows until told to stop, and then to the end of the log.
 * @param next the URL and the limit of the next page
 */
export async function followFeed(
  next: () => { readonly url: string; readonly limit: number },
  how: { readonly headers: Headers; readonly isOver: () => boolean; readonly pauseMs?: number },
): Promise<readonly string[]> {
  const { headers, isOver, pauseMs = 0 } = how;
  const names: string[] = [];
  let after = '';
  for (;;) {
    const wasOver = isOver();
    const { url, limit } = next();
    const page = await readFeed(url, `after=${encodeURIComponent(after)}&limit=${limit}`, headers);
    names.push(...page.items.map(nameOf));
    after = page.nextCursor;
    const isAtEnd = page.items.length === 0 && !page.headers.has('Link');
    if (wasOver && isAtEnd) return names;
    if (pauseMs > 0) await delay(pauseMs);
  }
}
