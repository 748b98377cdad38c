/**
 * Wraps an operation of a collection so that a built-in resource can check and change the new fields before
 * preconditions and the store: for rules beyond a schema, such as a time that must be in the future.
 */
import type { Problem } from '../../http/problem.ts';
import type { Ask, Operation, Proposal, Standing } from '../../kernel/resource.ts';
import type { MaybePromise, Row } from '../../store/store.ts';
import { isUnchanged } from '../document/propose.ts';

export type NewFields = Readonly<Record<string, unknown>>;

export type Revision = {
  readonly ask: Ask;
  /** The current row; undefined if the request creates the resource. */
  readonly before: Row | undefined;
  /** As parsed: an object for POST and PUT, format and value of a patch for PATCH. */
  readonly content: unknown;
  /** Valid by the schema. */
  readonly fields: NewFields;
};

export type Revise = (revision: Revision) => MaybePromise<Revised | { readonly refused: Problem }>;

/**
 * `secret`: stored with the fields but not served; its type is known to the operation that revises them. `hasNewSecret`: it differs from what is
 * stored, which is a change, although the document does not contain it.
 */
export type Revised = {
  readonly fields: NewFields;
  readonly secret?: unknown;
  readonly hasNewSecret?: boolean;
};

export type FieldsProposal = Proposal & Revised & { readonly unchanged?: boolean };

/** Members with the value undefined count as absent. */
function saysTheSame(fields: NewFields, { doc, deletedAt }: Row): boolean {
  const kept = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  return deletedAt === null && isUnchanged(kept, JSON.parse(doc) as NewFields);
}

/** @param operation POST, PUT or PATCH of a collection, whose proposals have `fields` */
export function revised(operation: Operation, revise: Revise): Operation {
  const { propose } = operation;
  if (propose === undefined) throw new Error('a revised operation requires a propose stage');
  return {
    ...operation,
    // A revision may depend on other rows as they are committed.
    chains: false,
    propose: async (ask, standing, content) => {
      const proposal = (await propose(ask, standing, content)) as FieldsProposal;
      if (proposal.problem !== null) return proposal;
      const { row: before } = standing as Standing & { readonly row?: Row };
      const found = await revise({ ask, before, content, fields: proposal.fields });
      if ('refused' in found) return { ...proposal, problem: found.refused, fields: {} };
      const unchanged =
        before !== undefined && found.hasNewSecret !== true && saysTheSame(found.fields, before);
      return { ...proposal, ...found, unchanged };
    },
  };
}
