/** What is asked of a session of PostgreSQL, and what it answers. */

export type Cell = string | number | boolean | null;
export type Rows = readonly (readonly Cell[])[];
/** Arrays travel as array literals; a cast such as `$1::text[]` in the statement says of what. */
export type Bindable = Cell | readonly Cell[];

export type Call = {
  readonly sql: string;
  readonly values: readonly Bindable[];
  /**
   * Whether the statement is kept in the session (default true). A text that is not, and has no values, is sent as a simple
   * query: it may then hold several statements, of which the last one's reply counts.
   */
  readonly prepared?: boolean;
};

/** Columns in order; `affected` is the number of rows that the command names, 0 where it names none. */
export type Reply = { readonly rows: Rows; readonly affected: number };
