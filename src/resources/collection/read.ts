/**
 * GET and HEAD of a member (§4.2, §4.3): the stored bytes, or the members that `fields` selects. A selection does not
 * change the entity tag: it is part of the target URI, and a later If-Match must still match.
 */
import type { Problem } from '../../http/problem.ts';
import type { Operation, Proposal } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import type { Field } from '../../model/field.ts';
import { projection } from '../query/project.ts';
import { readSelection } from '../query/selection.ts';
import type { Served } from './served.ts';
import { type MemberStanding, memberStanding, memberValidators } from './standing.ts';

type Selection = Proposal & { readonly select: readonly Field[] | undefined };

const everything: Selection = { problem: null, select: undefined };

export function readOperation(served: Served): Operation<MemberStanding, never, Selection> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.read, 'read', principal),
    standing: (ask) => memberStanding(served, ask, 'read'),
    propose: (ask) => {
      if (ask.query === undefined) return everything;
      const selection = readSelection(ask.query, served.view(ask.principal).fields);
      return selection.ok
        ? { problem: null, select: selection.select }
        : { problem: parameterProblem(selection.message), select: undefined };
    },
    validators: (_ask, standing) => ({
      ...memberValidators(standing),
      cacheControl: collection.cacheControl,
    }),
    restsOn: ({ row }) => ({ table: collection.name, row }),
    represent: (_ask, standing, proposal) => {
      const doc = standing.seen?.doc ?? standing.row?.doc ?? '';
      return {
        content: proposal?.select === undefined ? doc : projection(proposal.select)(doc),
        mediaType: 'application/json',
        validators: memberValidators(standing),
        cacheControl: collection.cacheControl,
      };
    },
  };
}

function parameterProblem(message: string): Problem {
  return { code: 'query_parameter_invalid', message };
}
