/** The member that counts dependants in a 409 body when the declaration names none (§2.2). */

/** `products` gives `productCount`, `order-lines` gives `orderLineCount`; English plurals by rule, not by dictionary. */
export function countName(collection: string): string {
  const words = singular(collection).split('-');
  const [first = '', ...rest] = words;
  return `${first}${rest.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('')}Count`;
}

function singular(plural: string): string {
  if (plural.endsWith('ies') && plural.length > 4) return `${plural.slice(0, -3)}y`;
  for (const ending of ['sses', 'shes', 'ches', 'xes', 'zes']) {
    if (plural.endsWith(ending)) return plural.slice(0, -2);
  }
  const kept = ['ss', 'us', 'is'].some((ending) => plural.endsWith(ending));
  return plural.endsWith('s') && !kept ? plural.slice(0, -1) : plural;
}
