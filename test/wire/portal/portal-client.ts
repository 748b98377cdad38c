/** The portal as a customer's engineer uses it: a link that the operator makes, its session, and requests with that. */
import assert from 'node:assert/strict';
import { type Answer, send } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';

export const base = '/api/v1';

export type Link = {
  readonly id: string;
  readonly url: string;
  readonly token: string;
  readonly expiresAt: string;
};

type Maker = { readonly key?: string; readonly expiresIn?: number };

export async function makeLink(
  program: RunningServer,
  tenant: string,
  { key, expiresIn }: Maker = {},
): Promise<Link> {
  const made = await program.send('POST', `${base}/portal-links`, {
    json: { tenant, ...(expiresIn === undefined ? {} : { expiresIn }) },
    ...(key === undefined ? {} : { anonymous: true, headers: { Authorization: `Bearer ${key}` } }),
  });
  assert.equal(made.status, 201, made.body);
  const { id, url, expiresAt } = made.json() as Record<string, string>;
  return {
    id: String(id),
    url: String(url),
    token: new URL(String(url)).hash.slice(1),
    expiresAt: String(expiresAt),
  };
}

export function exchangeLink(program: RunningServer, link: string): Promise<Answer> {
  return program.send('POST', `${base}/portal-sessions`, { anonymous: true, json: { link } });
}

export type Session = {
  readonly link: Link;
  readonly token: string;
  ask(
    method: string,
    path: string,
    json?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>;
};

export async function openPortal(
  program: RunningServer,
  tenant: string,
  maker: Maker = {},
): Promise<Session> {
  const link = await makeLink(program, tenant, maker);
  const opened = await exchangeLink(program, link.token);
  assert.equal(opened.status, 200, opened.body);
  const token = String(opened.json().token);
  return { link, token, ask: (...asked) => askWith(program, token, ...asked) };
}

export function askWith(
  program: RunningServer,
  token: string,
  method: string,
  path: string,
  json?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return send(program.port, method, path.startsWith('/') ? path : `${base}/${path}`, {
    anonymous: true,
    headers: { Authorization: `Bearer ${token}`, ...headers },
    ...(json === undefined ? {} : { json }),
  });
}
