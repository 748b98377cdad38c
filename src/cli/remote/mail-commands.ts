/** `comity mails`: mails that are kept until they are sent. */
import { type KeptMail, mailStatuses } from '../../model/kept-mail.ts';
import { columns, lines } from '../table.ts';
import type { Noun } from './remote-command.ts';

/** Keeps a mail on its line of the terminal; `--json` shows all. */
const subjectCharactersMax = 40;

export const mails: Noun = {
  name: 'mails',
  description: 'list mails, and send failed ones again',
  key: 'administrator',
  thing: 'mail',
  commands: [
    {
      name: 'list',
      description: 'list mails, the newest first',
      options: [
        ['--status <status>', 'only those in one state', { member: 'status', choices: mailStatuses }],
        ['--template <name>', 'only those of one template', { member: 'template' }],
      ],
      request: 'GET /mails',
      lists: 'newest',
      table: columns<KeptMail>({
        ID: 'id',
        TO: ({ to: [first = '', ...others] }) =>
          others.length === 0 ? first : `${first} and ${others.length} more`,
        SUBJECT: ({ subject }) => subject.slice(0, subjectCharactersMax),
        STATUS: 'status',
        ATTEMPTS: 'attempts',
        'LAST ERROR': 'lastError',
        DUE: 'dueAt',
        CREATED: 'createdAt',
      }),
      none: 'No mails.',
    },
    {
      name: 'show',
      description: 'show one mail with what became of its recipients',
      arguments: [['<id>', 'id of the mail, mail_...']],
      request: 'GET /mails/{id}',
      print: lines<KeptMail>({
        id: 'id',
        to: 'to',
        cc: ({ cc }) => cc.join(', ') || undefined,
        bcc: ({ bcc }) => bcc.join(', ') || undefined,
        accepted: 'accepted',
        refused: 'refused',
        subject: 'subject',
        template: 'template',
        status: ({ status, lastError }) => (lastError === null ? status : `${status} (${lastError})`),
        attempts: 'attempts',
        due: 'dueAt',
        sent: 'sentAt',
        created: 'createdAt',
      }),
    },
    {
      name: 'resend',
      description: 'send mails again at once, to the recipients that have not accepted them',
      arguments: [['<id...>', 'ids of the mails, mail_...']],
      help: '\nExits 1 if one of them was refused: the content of a sent mail is not kept.',
      request: 'POST /mails/{id}/resend',
      content: {},
      each: 'is sent again.',
    },
  ],
};
