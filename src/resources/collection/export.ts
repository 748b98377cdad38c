/**
 * GET {collection}/bulk (§4.19.6): documents as they are stored, with their owners, in the form that an import takes.
 * For administrators. It takes the parameters of a list and has its pages; `afterRead` does not apply.
 */
import type { Ask, Operation, Standing } from '../../kernel/resource.ts';
import { ownerMember } from '../../model/collection.ts';
import { ownerField } from '../../model/field.ts';
import { isAdministrator } from '../../model/principal.ts';
import {
  type ListOptions,
  type ListProposal,
  proposeList,
  repeatedFields,
  representList,
} from './list-answer.ts';
import type { Served } from './served.ts';

const open: Standing = { exists: true, visible: true, permitted: true };

export function exportOperation(
  served: Served,
  options: Pick<ListOptions, 'limits'>,
): Operation<Standing, never, ListProposal> {
  const { listing, collection, store } = served;
  const owner = { ...ownerField, name: ownerMember(collection) };
  const path = `${served.path}/bulk`;
  const cacheControl = 'private, no-store';
  const listed: ListOptions = { ...options, path, listing, cacheControl, permission: () => 'granted' };
  return {
    permission: (principal) => (isAdministrator(principal) ? 'granted' : 'denied'),
    standing: () => open,
    propose: (ask: Ask) => proposeList(listed, ask.query ?? '', ask.principal),
    validators: async (ask) => {
      const fields = repeatedFields(listing);
      return { tag: await listing.tag(ask.principal), modifiedAt: null, cacheControl, fields };
    },
    represent: async (ask, _standing, proposal) => {
      if (proposal?.list === undefined) throw new Error('an export requires its query');
      const { prepared, position } = proposal.list;
      const asked = { ...prepared.asked, owner };
      const place = listing.place();
      const page = await listing.pageFrom(store, { ...prepared, asked }, ask.principal, position);
      return representList(ask, { listing, cacheControl, ...proposal.list, page, place });
    },
  };
}
