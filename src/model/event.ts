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
 */
export function eventDocument(id: string, type: string, at: number, object: string): string {
  const created = Math.floor(at / 1000);
  return `{"id":"${id}","object":"event","type":${JSON.stringify(type)},"created":${created},"data":{"object":${object}}}`;
}
