/** The port through which features send mail; src/mail has the adapter. */

export type Mail = {
  /** In the form of `normalizeEmail`. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
};

export type MailPort = {
  /** Queues the mail and returns at once; it is retried on failure and dropped after the last attempt. Never throws. */
  send(mail: Mail): void;
  /** Refuses further mails; resolves when the attempt that is under way has ended. */
  close(): Promise<void>;
};
