/** The refusal where only a mail could help and the program can send none, the same for every account. */
import type { Done } from '../kernel/action.ts';

export const mailMissing: Done = {
  refused: { code: 'unavailable', message: 'no mail server is configured' },
};
