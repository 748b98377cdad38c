/**
 * GET {collection}/bulk (§4.19.6): documents as they are stored, with their owners, in the form that an import takes.
 * For administrators. It takes the parameters of a list and has its pages; `afterRead` does not apply.
 */
import type { Ask, Operation, Standing } from '../../kernel/resource.ts';
import { isAdministrator } from '../../model/principal.ts';
import type { Page, Plan, Store } from '../../store/store.ts';
import { ownerMember } from '../document/bulk-content.ts';
import {
  type ListOptions,
  type ListProposal,
  proposeList,
  representList,
  varyByPreference,
} from './list-answer.ts';
import type { Served } from './served.ts';
import { withOwners } from './show-docs.ts';

const open: Standing = { exists: true, visible: true, permitted: true };

export function exportOperation(
  served: Served,
  options: Pick<ListOptions, 'limits'>,
): Operation<Standing, never, ListProposal> {
  const { listing, collection, store } = served;
  const path = `${served.path}/bulk`;
  const cacheControl = 'private, no-store';
  const listed: ListOptions = { ...options, path, listing, cacheControl, permission: () => 'granted' };
  const owned = withOwnersIn(store, collection.name, JSON.stringify(ownerMember(collection)));
  return {
    permission: (principal) => (isAdministrator(principal) ? 'granted' : 'denied'),
    standing: () => open,
    propose: (ask: Ask) => proposeList(listed, ask.query ?? '', ask.principal),
    validators: async (ask) => ({
      tag: await listing.tag(ask.principal),
      modifiedAt: null,
      cacheControl,
      fields: varyByPreference,
    }),
    represent: async (ask, _standing, proposal) => {
      if (proposal?.list === undefined) throw new Error('an export requires its query');
      const { prepared, position } = proposal.list;
      const page = await listing.pageFrom(owned, prepared, ask.principal, position);
      return representList(ask, { listing, cacheControl, ...proposal.list, page });
    },
  };
}

/** The store with the owner of each document as its last member. @param name the member, as JSON */
function withOwnersIn(store: Store, table: string, name: string): Store {
  const read = async (plan: Plan, ...asked: Parameters<Plan['page']>): Promise<Page> => {
    const page = await plan.page(...asked);
    const docs = await withOwners(store, table, page.docs, (owners) =>
      page.docs.map((doc, at) => `${doc.slice(0, -1)},${name}:${JSON.stringify(owners[at] ?? null)}}`),
    );
    return { docs, first: page.first, last: page.last, more: page.more, version: page.version };
  };
  return {
    ...store,
    plan(query) {
      const plan = store.plan(query);
      return { ...plan, page: (...asked) => read(plan, ...asked) };
    },
  };
}
