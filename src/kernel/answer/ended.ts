/** A finished walk, as the response builders see it. Stages that the walk did not reach are undefined. */

import type { NodeName } from '../../http/conduct/node.ts';
import type { Allowance, Request, Response } from '../../http/message.ts';

import type { Problem } from '../../http/problem.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import type { MessageReading } from '../message-facts.ts';
import type { Ask, Made, Proposal, Standing, Validators } from '../resource.ts';

export type Ended = {
  readonly request: Request;
  readonly reading: MessageReading;
  /** The visited nodes; undefined outside development. */
  readonly trace: readonly NodeName[] | undefined;
  /** State of the limit that counted the request; undefined if none applies. */
  readonly allowance: Allowance | undefined;
  readonly ask: Ask | undefined;
  readonly principal: Principal;
  readonly bytes: Uint8Array | undefined;
  readonly standing: Standing | undefined;
  readonly proposal: Proposal | undefined;
  readonly validators: Validators | undefined;
  readonly problem: Problem | undefined;
  readonly made: { readonly made: Made; readonly rev: number } | undefined;
};

/** The holder of a response that stays open, such as a stream. */
export function holderOf(principal: Principal): NonNullable<Response['holder']> {
  const id = principal.kind === 'anonymous' ? undefined : principal.id;
  return { id, isAdministrator: isAdministrator(principal) };
}
