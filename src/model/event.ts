/** The event envelope of §2.6, and types of events about resource writes: `{collection}.created|updated|deleted`. */
import type { Rule } from './access.ts';
import type { Principal } from './principal.ts';

export type Change = 'created' | 'updated' | 'deleted';

export function eventType(collection: string, change: Change): string {
  return `${collection}.${change}`;
}

/**
 * The envelope as served.
 * @param object the affected resource as JSON text, unchanged
 * @param at milliseconds since the epoch; `created` has whole seconds (§6.2)
 * @param tenant of the event, if no resource in it has one
 */
export function eventDocument(id: string, type: string, at: number, object: string, tenant?: string): string {
  const created = Math.floor(at / 1000);
  const whose = tenant === undefined ? '' : `,"tenant":${JSON.stringify(tenant)}`;
  return `{"id":"${id}","object":"event","type":${JSON.stringify(type)},"created":${created}${whose},"data":{"object":${object}}}`;
}

/**
 * The collection name of events about no resource (§6): posted ones, and Comity's own about endpoints.
 * `readRuleOfPosted` governs them; the rules of its collection govern an event about a resource.
 */
export const noCollection = '';

/** The member of the envelope with the tenant, which the rule reads. */
export const tenantMember = 'tenant';

const ownOrOfTenant: Rule = { anyOf: ['owner', { tenantIn: tenantMember }] };

/** Permits the owner and members of the tenant, with a credential for reading or webhooks; administrators read all. */
export function readRuleOfPosted(principal: Principal): Rule {
  const reads = principal.kind === 'authenticated' && principal.scopes.has('read');
  return reads ? ownOrOfTenant : { bearing: 'webhooks', rule: ownOrOfTenant };
}
