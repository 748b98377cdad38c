/** A row of the import table. */

export type FolderRow = {
  /** Path of a folder, or of one file, relative to the root. The longest row that covers a file is its row. */
  readonly folder: string;
  /** Other rows that its files may import from. A row's own files may always import each other. */
  readonly may: readonly string[];
  /** Modules of Node that its files may import; `any` where the boundary does not matter. */
  readonly node: readonly string[] | 'any';
  /** Packages of npm that its files may import, and do. */
  readonly packages: readonly string[];
};
