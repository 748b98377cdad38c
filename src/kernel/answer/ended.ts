/**
 * A walk that has ended, as the builders of answers see it.
 */

import type { NodeName } from '../../http/conduct/node.ts';
import type { Allowance, Request, Response } from '../../http/message.ts';

import type { Problem } from '../../http/problem.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import type { MessageReading } from '../message-facts.ts';
import type { Ask, Made, Proposal, Standing, Validators } from '../resource.ts';

/** Everything a builder may look at. Stages the walk did not reach are undefined. */
export type Ended = {
  readonly request: Request;
  readonly reading: MessageReading;
  /** The nodes passed; undefined outside development. */
  readonly trace: readonly NodeName[] | undefined;
  /** What the limit that the request was counted against says; undefined where none applies. */
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

/** Who holds an answer that stays open. */
export function holderOf(principal: Principal): NonNullable<Response['holder']> {
  const id = principal.kind === 'anonymous' ? undefined : principal.id;
  return { id, isAdministrator: isAdministrator(principal) };
}
