/**
 * The rows that every benchmark stores and asks for: one product of about 300 bytes for each index, the same for
 * Comity and for the floors, so that both serve equal bytes. Pure: an index in, text out.
 */

/** A fixed category that every product refers to; seeding stores it in Comity. */
export const categoryId = '01JBENCH0000000000CATEG0RY';

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const firstCreatedMs = Date.UTC(2026, 0, 1);

/** The identifier of the product with this index: 26 characters of Crockford base 32, rising with the index. */
export function productId(index: number): string {
  let tail = '';
  let left = index;
  for (let place = 0; place < 8; place += 1) {
    tail = alphabet.charAt(left % 32) + tail;
    left = Math.floor(left / 32);
  }
  return `01JBENCH0000000000${tail}`;
}

/** Creation time of the product with this index, in ms since the epoch: one each millisecond. */
export function productCreatedMs(index: number): number {
  return firstCreatedMs + index;
}

/** The price of the product with this index: 10,000 distinct values spread evenly over the rows. */
export function productPrice(index: number): number {
  return ((index * 7919) % 10_000) / 4 + 0.25;
}

/** The representation as served. */
export function productDocument(index: number): string {
  const at = new Date(productCreatedMs(index)).toISOString();
  const words = productFields(index);
  return `{"id":"${productId(index)}",${words},"createdAt":"${at}","updatedAt":"${at}"}`;
}

/** The members that a client sends, without braces, for a product with this index. */
export function productFields(index: number, category: string = categoryId): string {
  return (
    `"name":"Enamelled kettle no. ${index}","price":${productPrice(index)},"categoryId":"${category}",` +
    `"sku":"SKU-${String(index).padStart(12, '0')}","tags":["kitchen","enamel"],"stock":${index % 500}`
  );
}
