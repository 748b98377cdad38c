/** What a restore did, whichever store it was into. */
export type Restored = {
  readonly rows: number;
  readonly tables: number;
  /** The store-wide revision, from which the store goes on. */
  readonly rev: number;
};

/** A store that others use while it would be filled. */
export class StoreInUse extends Error {
  override readonly name = 'StoreInUse';
  readonly code = 'store_in_use';
}

/** A store that must be empty to be restored into, and is not. */
export class NotEmpty extends Error {
  override readonly name = 'NotEmpty';
  readonly code = 'store_not_empty';
}
