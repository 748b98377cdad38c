/**
 * The octets that requests make out of less: octets that the rows, events and words of one take at most in this process, by kind of work. They are charged
 * before anything is made (RequestMemory.makeRoom); docs/reference/limits.md lists them, and test/full/measured/growth.test.ts sends each many
 * times at once. Measured: live memory of the main thread (heap and external) after a full collection of garbage every few milliseconds, on the
 * embedded store.
 */

const KiB = 1024;

export type WorkRule = {
  readonly work: string;
  /** The unit that is counted. */
  readonly per: string;
  /** Charged for each. */
  readonly octets: number;
  readonly measured: string;
};

export const workRules = {
  bulkItem: {
    work: '`POST {collection}/bulk`',
    per: 'item',
    octets: 2 * KiB,
    measured: '1.0 KiB for `{"title":"b"}`, also with `search`; 1.3 KiB with `"atomic": false`',
  },
  bulkOctet: {
    work: '`POST {collection}/bulk`, besides',
    per: 'octet of content',
    octets: 16,
    measured:
      '2.6 each of 8 at once, 7.4 for one alone, of 800 KB with a character beyond Latin-1; 1.7 and 4.6 without one',
  },
  deletedId: {
    work: '`POST {collection}/bulk-delete`',
    per: 'id',
    octets: 16 * KiB,
    measured: '8.5 KiB for a document of 5 KB',
  },
  dependant: {
    work: 'DELETE in a collection with dependants that follow it',
    per: 'document of `COMITY_CASCADE_MAX`',
    octets: 8 * KiB,
    measured: '4.0 KiB for a document of 1 KB',
  },
  changedCharacter: {
    work: 'a change, deletion or restoration of a stored document of more than 16 KiB',
    per: 'character of the document',
    octets: 16,
    measured:
      '4.2 for one alone of 400,000 characters and 1.2 each of 8 at once; 8.1 and 2.3 with a character beyond Latin-1',
  },
  change: {
    work: 'an action, a hook, or a function of a message that writes',
    per: 'change, besides 16 octets for each of its content',
    octets: 4 * KiB,
    measured: 'not by itself: the work is that of an item',
  },
  messageOctet: {
    work: 'a received message, or an event for a function, of more than 16 KiB: stored, handed on or read',
    per: 'octet of its content',
    octets: 16,
    measured:
      '2.4 for one alone of 5 MB that is stored and handed to its function; 14.7 of the resident memory, with the writer and the thread of the function',
  },
  pageOctet: {
    work: 'an action, a hook, or a function of a message that lists',
    per: 'octet of its longest page; `COMITY_PAGE_BYTES_MAX` while it is read',
    octets: 3,
    measured:
      '1.8 each of 8 at once, 2.9 for one alone, of 5 MB with a character beyond Latin-1 in each document; 1.0 and 2.5 without one',
  },
} as const satisfies Readonly<Record<string, WorkRule>>;

/** @param bytes the content; undefined: as many items as may be */
export function bulkOctets(bytes: Uint8Array | undefined, itemsMax: number): number {
  const { bulkItem, bulkOctet } = workRules;
  if (bytes === undefined) return itemsMax * bulkItem.octets;
  return countOf(bytes, brace, itemsMax) * bulkItem.octets + bytes.length * bulkOctet.octets;
}

/** @param bytes as for `bulkOctets` */
export function bulkDeleteOctets(bytes: Uint8Array | undefined, idsMax: number): number {
  return (bytes === undefined ? idsMax : countOf(bytes, comma, idsMax) + 1) * workRules.deletedId.octets;
}

/** A shorter document costs less than its request. */
const shortMax = 16 * KiB;

/** @param length of the content of a message */
export function messageOctets(length: number): number {
  return length > shortMax ? length * workRules.messageOctet.octets : 0;
}

/** @param row undefined: nothing is changed */
export function changeOctets(row: { readonly doc: string } | undefined): number {
  const characters = row?.doc.length ?? 0;
  return characters > shortMax ? characters * workRules.changedCharacter.octets : 0;
}

const brace = 0x7b;
const comma = 0x2c;

/** An item begins with a brace, and a comma is between two ids: there may be more of them, and never fewer. */
function countOf(bytes: Uint8Array, octet: number, most: number): number {
  let count = 0;
  for (let at = bytes.indexOf(octet); at !== -1 && count < most; at = bytes.indexOf(octet, at + 1))
    count += 1;
  return count;
}
