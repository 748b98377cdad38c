/**
 * The collections as the program that embeds Comity calls them, on behalf of a principal (docs/guides/testing.md). A call is the request that a
 * client with the rights of this principal would send, walked without a socket: access rules, concealment, hidden fields and hooks apply,
 * and each call is a unit of its own. No credential is checked and no rate limit counts it.
 */
import { ResourceRefused } from '../config/senders.ts';
import type { Request, Response } from '../http/message.ts';
import { readRequestFields } from '../http/request-fields.ts';
import type { Resources } from '../model/logic/collection-calls.ts';
import { type Authenticated, authenticated, type Principal } from '../model/principal.ts';
import type { LoopTurns } from '../observe/event-loop.ts';
import type { Services } from '../store/capabilities.ts';
import type { MaybePromise } from '../store/store.ts';
import { refuseCall } from './refusal.ts';
import { callsOver } from './transaction/calls.ts';
import { largestPage } from './transaction/carry-out.ts';
import type { ResourceCall } from './transaction/resource-call.ts';

export type CallsAs = (principal: Principal) => Resources;

type Sender = Pick<Services, 'newId' | 'settings'> & {
  readonly base: string;
  readonly turns: LoopTurns;
  readonly handleAs: (request: Request, principal: Principal) => MaybePromise<Response>;
};

/** `fields`, `patch` and `query` are JSON texts already (transaction/calls.ts). */
type Sent = {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly text?: unknown;
  readonly condition?: readonly [name: 'If-Match' | 'If-None-Match', value: string];
  readonly principal: Principal;
};

const json = 'application/json';

export function createCallsAs(
  { newId, settings }: Pick<Services, 'newId' | 'settings'>,
  base: string,
  turns: LoopTurns,
  handleAs: Sender['handleAs'],
): CallsAs {
  const sender = { newId, settings, base, turns, handleAs };
  return (principal) => callsOver((call) => carryOut(sender, principal, call)).resources;
}

async function carryOut(
  sender: Sender,
  principal: Principal,
  call: ResourceCall,
): Promise<string | undefined> {
  await sender.turns.next();
  if (call.do === 'emit' || call.do === 'mail') throw new Error(`${call.do} is no call on a collection`);
  const path = `${sender.base}/${encodeURIComponent(call.collection)}`;
  if (call.do === 'list') {
    const text = call.largest === true ? largestPage(call.query, sender.settings) : call.query;
    return taken(await send(sender, { method: 'QUERY', path, type: json, text, principal }));
  }
  const segment = call.id === undefined ? undefined : segmentOf(call.id);
  if (call.do === 'get' && segment === undefined) return undefined;
  const member = segment === undefined ? path : `${path}/${segment}`;
  if (call.do === 'get') {
    const response = await send(sender, { method: 'GET', path: member, principal });
    return response.status === 404 ? undefined : taken(response);
  }
  if (call.id !== undefined && segment === undefined)
    throw refuseCall('not_found', `no document has the id ${JSON.stringify(call.id)}`);
  if (call.do === 'create') {
    const by = call.owner === undefined ? principal : onBehalfOf(principal, call.owner);
    const content = { type: json, text: call.fields, principal: by };
    if (call.id === undefined) return taken(await send(sender, { method: 'POST', path, ...content }));
    const condition = ['If-None-Match', '*'] as const;
    return taken(await send(sender, { method: 'PUT', path: member, condition, ...content }));
  }
  const sent = changeOf(call, member, principal);
  const response = await send(sender, sent);
  // The calls know no versions: a collection that wants one named changes the present one.
  if (response.status !== 428) return taken(response);
  return taken(await send(sender, { ...sent, condition: ['If-Match', '*'] }));
}

function changeOf(
  call: Extract<ResourceCall, { do: 'update' | 'replace' | 'delete' }>,
  path: string,
  principal: Principal,
): Sent {
  switch (call.do) {
    case 'update':
      return { method: 'PATCH', path, type: 'application/merge-patch+json', text: call.patch, principal };
    case 'replace':
      return { method: 'PUT', path, type: json, text: call.fields, principal };
    case 'delete':
      return { method: 'DELETE', path, principal };
  }
}

/** Administrators may create for others. @throws ResourceRefused */
function onBehalfOf(principal: Principal, owner: string): Authenticated {
  if (principal.kind === 'authenticated' && principal.scopes.has('admin'))
    return authenticated({ ...principal, id: owner });
  throw refuseCall('forbidden', 'only an administrator may name the owner of what it creates');
}

/** @throws ResourceRefused if the path leads to no collection */
async function send({ base, handleAs, newId }: Sender, sent: Sent): Promise<Response> {
  const { method, path, type, text, condition = [], principal } = sent;
  const bytes = Buffer.from(typeof text === 'string' ? text : (JSON.stringify(text) ?? 'null'));
  const rawFields = ['Host', 'localhost', 'Accept', json, 'Prefer', 'return=representation', ...condition];
  if (type !== undefined) rawFields.push('Content-Type', type, 'Content-Length', String(bytes.length));
  const request: Request = {
    method,
    target: path,
    version: '1.1',
    fields: readRequestFields(rawFields),
    rawFields,
    readContent: async (bytesMax) =>
      bytes.length > bytesMax ? { ok: false, code: 'content_too_large' } : { ok: true, bytes },
    peer: '',
    id: newId(),
  };
  const response = await handleAs(request, principal);
  if (response.route !== 'none') return response;
  const [name = ''] = path.slice(base.length + 1).split('/');
  throw refuseCall('not_found', `no collection is named ${JSON.stringify(decodeURIComponent(name))}`);
}

/** Undefined: no document has this id; a dot alone would be a step in the path. */
function segmentOf(id: unknown): string | undefined {
  const isName = typeof id === 'string' && id !== '' && id !== '.' && id !== '..' && id.isWellFormed();
  return isName ? encodeURIComponent(id) : undefined;
}

/** @throws ResourceRefused for an error response */
function taken({ status, content }: Response): string | undefined {
  const text = typeof content === 'string' || content === null ? content : contentText(content);
  if (status < 400) return status === 204 || text === null ? undefined : text;
  const { code, error, errors = [] } = JSON.parse(text ?? '{}') as Refused;
  const faults = errors
    .filter(({ message }) => message !== error)
    .map(({ pointer, message }) => `${pointer === '' ? 'it' : pointer} ${message}`);
  throw new ResourceRefused(code, faults.length === 0 ? error : `${error}: ${faults.join('; ')}`, status);
}

function contentText(content: Exclude<Response['content'], string | null>): string {
  if (content instanceof Uint8Array) return Buffer.from(content).toString();
  throw new Error('a call on a collection got a stream');
}

type Refused = {
  readonly code: string;
  readonly error: string;
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
};
