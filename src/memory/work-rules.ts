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
  delivery: {
    work: 'a write whose event is sent to endpoints',
    per: 'delivery that its unit makes, in a queue of their own',
    octets: 8 * KiB,
    measured:
      '1.2 KiB, with the 1,000 requests that wait beside them; at 2 KiB each, the collection of garbage held the event loop for longer',
  },
  messageOctet: {
    work: 'a received message, or an event for a function, of more than 16 KiB: stored, handed on or read',
    per: 'octet of its content, of at most 3 MiB; longer content takes as much, or what follows if that is more',
    octets: 16,
    measured:
      '2.4 for one alone of 5 MB that is stored and handed to its function; 14.7 of the resident memory, with the writer and the thread of the function',
  },
  longMessageOctet: {
    work: 'a received message of more than 3 MiB: stored or read',
    per: 'octet of its content',
    octets: 4,
    measured: 'of the resident memory for 20 MB: 4.0 besides the content to be stored, 1.1 to be read',
  },
  handedOnOctet: {
    work: 'a received message of more than 3 MiB: handed on',
    per: 'octet of its content',
    octets: 2,
    measured:
      'of the resident memory for 20 MB: 3.1 with the start of the thread of its function, 1.0 to be forwarded',
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

/**
 * Octets of a part of a received message, and of the longest body that the row of its content holds: encoding takes about 3 ms, and the text is
 * longer than the rows that the embedded store keeps after a read. A multiple of three, so that only the last part has padding in base64.
 */
export const messagePartOctets = 3 * 1024 * KiB;

/** @param length of the content of a message that is stored or read */
export function messageOctets(length: number): number {
  return octetsOfMessage(length, workRules.longMessageOctet);
}

/** @param length of the content of a message that is handed on, for as long as that takes */
export function handedOnOctets(length: number): number {
  return octetsOfMessage(length, workRules.handedOnOctet);
}

function octetsOfMessage(length: number, long: WorkRule): number {
  if (length <= shortMax) return 0;
  const octets = Math.min(length, messagePartOctets) * workRules.messageOctet.octets;
  return length > messagePartOctets ? Math.max(octets, length * long.octets) : octets;
}

/** Content that may be refused although no setting of its own says so. */
export type ContentBound = { readonly contentBytesMax: number; readonly contentBound: string };

/** The longest message: by its setting, and by the memory budget, of which one request may be charged all. */
export function messageBound({ most, memoryBytes = Number.POSITIVE_INFINITY }: BoundedBy): ContentBound {
  const { messageOctet, longMessageOctet } = workRules;
  const isLong = memoryBytes >= messagePartOctets * messageOctet.octets;
  const fits = memoryBytes / (isLong ? longMessageOctet.octets : messageOctet.octets);
  return boundOf('message', 'COMITY_RECEIVED_BYTES_MAX', fits, { most, memoryBytes });
}

/** The longest content of a bulk request, likewise. */
export function bulkBound(itemsMax: number, by: BoundedBy): ContentBound {
  const { bulkItem, bulkOctet } = workRules;
  const { memoryBytes = Number.POSITIVE_INFINITY } = by;
  const fits = (memoryBytes - itemsMax * bulkItem.octets) / bulkOctet.octets;
  return boundOf('bulk request', 'COMITY_BULK_BYTES_MAX', Math.max(0, fits), { ...by, memoryBytes });
}

/** `most`: of the setting. `memoryBytes`: the size of the memory budget; absent: it bounds nothing. */
type BoundedBy = { readonly most: number; readonly memoryBytes?: number | undefined };

function boundOf(
  what: string,
  setting: string,
  fits: number,
  { most, memoryBytes }: Required<BoundedBy>,
): ContentBound {
  const contentBytesMax = Math.min(most, Math.floor(fits));
  const why =
    contentBytesMax === most
      ? setting
      : `as much as a memory budget of ${memoryBytes} octets has room for: COMITY_MEMORY_BYTES_MAX, or more memory, raises it`;
  return {
    contentBytesMax,
    contentBound: `the content of a ${what} has at most ${contentBytesMax} octets (${why})`,
  };
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
