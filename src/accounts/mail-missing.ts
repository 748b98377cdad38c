/** What is said where only a mail could help and the program can send none, of whichever account it is about. */
import type { Done } from '../kernel/action.ts';

export const mailMissing: Done = {
  refused: { code: 'unavailable', message: 'no mail server is configured' },
};
