/** Messages to and from the hashing thread: one run of argon2id (RFC 9106). */

export type HashJob = {
  readonly message: Uint8Array;
  readonly salt: Uint8Array;
  readonly memoryKibibytes: number;
  readonly passes: number;
  readonly lanes: number;
  readonly tagOctets: number;
};

/** `failed`: argon2id threw, for instance because memory ran out. */
export type HashReply = { readonly tag: Uint8Array } | { readonly failed: string };
