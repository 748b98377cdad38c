/**
 * The event envelope of §2.6, and the types that resource writes emit (surface: `{collection}.created|updated|deleted`).
 */

export type Change = 'created' | 'updated' | 'deleted';

/** `products.created` */
export function eventType(collection: string, change: Change): string {
  return `${collection}.${change}`;
}

/**
 * The envelope as served.
 * @param object the affected resource as JSON text, taken as it is
 * @param at milliseconds since the epoch; `created` has whole seconds (§6.2)
 * @param tenant whose event it is, where no resource in it says so
 */
export function eventDocument(id: string, type: string, at: number, object: string, tenant?: string): string {
  const created = Math.floor(at / 1000);
  const whose = tenant === undefined ? '' : `,"tenant":${JSON.stringify(tenant)}`;
  return `{"id":"${id}","object":"event","type":${JSON.stringify(type)},"created":${created}${whose},"data":{"object":${object}}}`;
}
