/**
 * Pages of an application and of strangers for a real browser, each on an origin of its own, and what a page does to the program.
 *
 * Chromium takes `localhost`, every name below it and 127.0.0.0/8 for trustworthy without TLS, so that `Secure` and `__Host-` cookies
 * are kept there as on https; other names would need it. `www.shop.localhost` and `api.shop.localhost` are one site, as
 * `localhost` is treated like a top-level domain; `stranger.localhost` is another.
 */
import { createServer } from 'node:http';
import type { Page } from 'playwright-core';
import { listen } from '../../harness/listening.ts';

export const apiHost = 'api.shop.localhost';
export const appHost = 'www.shop.localhost';
/** Of the same site as the program, and not trusted. */
export const siblingHost = 'members.shop.localhost';
export const strangerHost = 'stranger.localhost';

export type Pages = {
  readonly port: number;
  /** Where an empty page of this host is. */
  at(host: string): string;
  origin(host: string): string;
  close(): Promise<void>;
};

/** One server for the pages of every host: a browser tells them apart by name. */
export async function servePages(): Promise<Pages> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
    response.end('<!doctype html><title>A page</title><p>A page</p>');
  });
  const { port, close } = await listen(server);
  const origin = (host: string) => `http://${host}:${port}`;
  return {
    port,
    origin,
    at: (host) => `${origin(host)}/`,
    close,
  };
}

export type Fetched =
  | {
      readonly status: number;
      /** `basic`, `cors` or `opaque`, as the page is told. */
      readonly type: string;
      readonly body: string;
      readonly etag: string | null;
    }
  /** The browser kept the answer from the page, or did not send the request. */
  | { readonly failed: string };

export type FetchOptions = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Sent as JSON. */
  readonly json?: unknown;
  readonly credentials?: 'include' | 'omit' | 'same-origin';
  readonly mode?: 'cors' | 'no-cors';
};

const fetchInPage = `async ({ url, init }) => {
  try {
    const answer = await fetch(url, init);
    return { status: answer.status, type: answer.type, body: await answer.text(), etag: answer.headers.get('ETag') };
  } catch (error) {
    return { failed: String(error) };
  }
}`;

/** `fetch` as a script of the page calls it, with credentials unless told otherwise. */
export async function fetchFrom(page: Page, url: string, options: FetchOptions = {}): Promise<Fetched> {
  const { json, ...rest } = options;
  const init = { credentials: 'include', ...rest };
  if (json !== undefined) {
    init.body = JSON.stringify(json);
    init.headers = { 'Content-Type': 'application/json', ...options.headers };
  }
  return (await page.evaluate(`(${fetchInPage})(${JSON.stringify({ url, init })})`)) as Fetched;
}

const postInPage = `({ action, fields, enctype }) => {
  const form = document.createElement('form');
  form.method = 'post';
  form.action = action;
  form.enctype = enctype;
  for (const [name, value] of Object.entries(fields)) {
    const input = document.createElement('input');
    input.type = 'hidden';
    input.name = name;
    input.value = value;
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}`;

/** Submits a form that the page made, and waits for the answer that replaces the page. @returns its status and text */
export async function postForm(
  page: Page,
  action: string,
  fields: Readonly<Record<string, string>>,
  enctype = 'application/x-www-form-urlencoded',
): Promise<{ readonly status: number; readonly body: string }> {
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.url() === action && response.request().method() === 'POST'),
    page.evaluate(`(${postInPage})(${JSON.stringify({ action, fields, enctype })})`),
  ]);
  return { status: answer.status(), body: await answer.text().catch(() => '') };
}

export function statusOf(fetched: Fetched): number {
  if ('failed' in fetched) throw new Error(`the browser refused: ${fetched.failed}`);
  return fetched.status;
}

export function jsonOf(fetched: Fetched): Record<string, unknown> {
  if ('failed' in fetched) throw new Error(`the browser refused: ${fetched.failed}`);
  return JSON.parse(fetched.body) as Record<string, unknown>;
}
