/** Calls to a session of PostgreSQL, and their replies. */

export type Cell = string | number | boolean | null;
export type Rows = readonly (readonly Cell[])[];
/** Arrays are sent as array literals; a cast such as `$1::text[]` in the statement gives their type. */
export type Bindable = Cell | readonly Cell[];

export type Call = {
  readonly sql: string;
  readonly values: readonly Bindable[];
  /**
   * Prepare the statement and keep it in the session (default true). Without it, a text without values is sent as a simple query: it may
   * hold several statements, and the reply is the last one's.
   */
  readonly prepared?: boolean;
};

/** Columns in order; `affected` is the command's row count, 0 if it has none. */
export type Reply = { readonly rows: Rows; readonly affected: number };

/**
 * A row to join in a statement whose transaction waits for no disk and no replica: what it writes may be lost. Housekeeping has it, because a
 * synchronous standby that is gone stops every other transaction for good.
 */
export const unawaited = "(SELECT set_config('synchronous_commit', 'off', true)) AS unawaited";
