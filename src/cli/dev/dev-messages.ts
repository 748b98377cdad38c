/** Messages between `comity dev` and its processes. */
export type FromProcess =
  /** Its configuration imported the file: a change of it starts the next process. */
  | { readonly kind: 'imported'; readonly file: string }
  /** The configuration is read and checked. The process waits for `open`. */
  | { readonly kind: 'configured' }
  | { readonly kind: 'started'; readonly url: string };

/** `open`: the data is free, since the process before has ended. */
export type ToProcess = 'open' | 'stop';

/** `yes` for the processes of a session until one has started. */
export const firstVariable = 'COMITY_DEV_FIRST';
