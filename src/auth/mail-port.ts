/** Mail as the rooms send it; src/mail has the adapter. */

export type Mail = {
  /** As `normalizeEmail` writes it. */
  readonly to: string;
  readonly subject: string;
  /** Plain text. */
  readonly text: string;
};

export type MailPort = {
  /** Takes the mail and returns at once: it is sent in the background, again where that fails, and given up at some time. Never throws. */
  send(mail: Mail): void;
  /** Stops taking mails, and resolves when none is under way: at the latest when the attempt that runs has ended. */
  close(): Promise<void>;
};
