/**
 * Who may read an event that tells of no resource (§6): one that was posted by hand, or that the program makes of an endpoint. It stands in
 * no collection whose rules could say. Events of resources are read by the rules of their collection.
 */
import type { Rule } from './access.ts';
import type { Principal } from './principal.ts';

/** What stands in place of a collection's name in such an event. */
export const noCollection = '';

/** The member of the envelope that names the tenant, and what the rule looks at. */
export const tenantMember = 'tenant';

const ownOrOfTenant: Rule = { anyOf: ['owner', { tenantIn: tenantMember }] };

/** Its owner and members of its tenant, with a credential that may read or handle webhooks; administrators read all. */
export function readRuleOfPosted(principal: Principal): Rule {
  const reads = principal.kind === 'authenticated' && principal.scopes.has('read');
  return reads ? ownOrOfTenant : { bearing: 'webhooks', rule: ownOrOfTenant };
}
