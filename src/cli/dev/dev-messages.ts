/** What `comity dev` and its processes tell each other. The process is told `stop`. */
export type FromProcess =
  /** Its configuration imported the file: a change of it starts the next process. */
  { readonly kind: 'imported'; readonly file: string } | { readonly kind: 'started'; readonly url: string };

/** `yes` for the first process of a session. */
export const firstVariable = 'COMITY_DEV_FIRST';
