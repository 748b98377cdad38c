/**
 * Operations without an HTTP request: a handler calls them, without the walk (§4.14.5). They pass the same stages as a
 * request, except negotiation, preconditions and rate limits.
 */
import { ResourceRefused } from '../../config/senders.ts';
import type { Request } from '../../http/message.ts';
import { type Problem, statusOf } from '../../http/problem.ts';
import { problems } from '../../http/problem-registry.ts';
import { readRequestFields } from '../../http/request-fields.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import {
  type Ask,
  type Made,
  noPreferences,
  type Operation,
  type Proposal,
  type Standing,
} from '../../kernel/resource.ts';
import type { Principal } from '../../model/principal.ts';

const encoder = new TextEncoder();
const json: MediaType = { type: 'application/json', parameters: new Map() };

const noRequest: Request = {
  method: '',
  target: '',
  version: '1.1',
  fields: readRequestFields([]),
  rawFields: [],
  readContent: async () => ({ ok: true, bytes: new Uint8Array() }),
  peer: '',
  id: '',
};

/** @param captures the id of a member */
export function askOf(principal: Principal, captures: readonly string[]): Ask {
  return {
    request: noRequest,
    captures,
    query: undefined,
    preferences: noPreferences,
    principal,
    party: '',
    known: undefined,
    now: 0,
    companions: [],
  };
}

/** Parses content as the operation would parse it as JSON. @throws ResourceRefused */
export async function contentOf<C>(
  operation: Pick<Operation<never, C>, 'understand'>,
  ask: Ask,
  content: string,
): Promise<C | undefined> {
  const understood = await operation.understand?.(ask, encoder.encode(content), json);
  if (understood?.ok === false) throw refusalOf(understood.problem);
  return understood?.value;
}

/**
 * Proposes and performs the operation.
 * @throws ResourceRefused
 */
export async function carryOut<S extends Standing, C, P extends Proposal>(
  operation: Operation<S, C, P>,
  ask: Ask,
  standing: S,
  content: C | undefined,
): Promise<Made> {
  const proposal = await operation.propose?.(ask, standing, content);
  if (proposal !== undefined && proposal.problem !== null) throw refusalOf(proposal.problem);
  const result = await operation.act?.(ask, standing, proposal);
  if (result !== undefined && 'made' in result) return result.made;
  if (result !== undefined && 'refused' in result) throw refusalOf(result.refused);
  // Writes of one handler run in turn, so nothing can come between its read and its write.
  throw refuse('internal');
}

const messageCharactersMax = 1000;

/**
 * Converts a refusal of the kernel (§7) for a handler: its code, and the whole error response in one sentence. A pointer
 * of the application's own is kept beside it.
 */
export function refusalOf(problem: Problem): ResourceRefused {
  const { code, message, own, errors = [] } = problem;
  const text = message ?? problems[code].message;
  const pointer = own === undefined ? undefined : errors[0]?.pointer;
  const faults = errors
    .filter((error) => error.message !== text)
    .map((error) => `${error.pointer === '' ? 'it' : error.pointer} ${error.message}`);
  const whole = faults.length === 0 ? text : `${text}: ${faults.join('; ')}`;
  const told = whole.slice(0, messageCharactersMax);
  return new ResourceRefused(own?.code ?? code, told, statusOf(problem), pointer);
}

/** The same refusal, which names the call: a function makes several. */
export function refusalOfCall(
  { code, message, status, pointer }: ResourceRefused,
  called: string,
): ResourceRefused {
  const told = `${called}: ${message}`.slice(0, messageCharactersMax);
  return new ResourceRefused(code, told, status, pointer);
}

export function refuse(code: Problem['code'], message?: string): ResourceRefused {
  return refusalOf(message === undefined ? { code } : { code, message });
}
