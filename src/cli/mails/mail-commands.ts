/** `comity mails` and its subcommands. */
import type { KeptMail } from '../../model/kept-mail.ts';
import { changeEach } from '../change-each.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { labelledLines, tableText, tellList } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export type ListArguments = ServerArguments & {
  readonly status?: string;
  readonly template?: string;
  readonly limit: number;
};

/** Keeps a mail on its line of the terminal; `--json` shows all. */
const subjectCharactersMax = 40;

/** `comity mails list`: the newest first. */
export async function listMails(terminal: Terminal, options: ListArguments, json: boolean): Promise<number> {
  const { status, template, limit } = options;
  const query = new URLSearchParams({
    ...(status === undefined ? {} : { status }),
    ...(template === undefined ? {} : { template }),
    sort: '-id',
  });
  const listed = await openServer(terminal, options).list<KeptMail>(`/mails?${query}`, limit);
  tellList(terminal, listed, json, { text: mailsText, none: 'No mails.' });
  return exitCodes.done;
}

function mailsText(mails: readonly KeptMail[]): string {
  const rows = mails.map(({ id, to, subject, status, attempts, dueAt, lastError, createdAt }) => [
    ...[id, recipientsText(to), subject.slice(0, subjectCharactersMax), status, String(attempts)],
    ...[lastError ?? '', dueAt ?? '', createdAt],
  ]);
  return tableText([['ID', 'TO', 'SUBJECT', 'STATUS', 'ATTEMPTS', 'LAST ERROR', 'DUE', 'CREATED'], ...rows]);
}

function recipientsText([first = '', ...others]: readonly string[]): string {
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}

/** `comity mails show`. */
export async function showMail(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const mail = (await server.ask('GET', pathOf(id), { subject: `mail ${id}` })) as KeptMail;
  terminal.out(json ? JSON.stringify(mail, undefined, 2) : mailText(mail));
  return exitCodes.done;
}

function pathOf(id: string): string {
  return `/mails/${encodeURIComponent(id)}`;
}

function mailText(mail: KeptMail): string {
  const { id, subject, template, status, attempts, lastError, dueAt, sentAt, createdAt } = mail;
  return labelledLines([
    ['id', id],
    ['to', mail.to.join(', ')],
    ['cc', mail.cc.join(', ') || undefined],
    ['bcc', mail.bcc.join(', ') || undefined],
    ['accepted', mail.accepted.join(', ')],
    ['refused', mail.refused.join(', ')],
    ['subject', subject],
    ['template', template],
    ['status', lastError === null ? status : `${status} (${lastError})`],
    ['attempts', attempts],
    ['due', dueAt],
    ['sent', sentAt],
    ['created', createdAt],
  ]);
}

/** `comity mails resend` */
export async function resendMails(
  terminal: Terminal,
  ids: readonly string[],
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  return changeEach(terminal, ids, json, {
    change: (id) => server.ask('POST', `${pathOf(id)}/resend`, { json: {}, subject: `mail ${id}` }),
    told: 'is sent again.',
  });
}
