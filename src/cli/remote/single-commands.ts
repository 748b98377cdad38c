/** Commands for a running server that belong to no noun. Their code is loaded when one is called. */
import { settings } from '../../config/settings.ts';
import type { ShownHold } from '../../hold/hold.ts';
import { schemes } from '../../model/endpoint.ts';
import { commaList, wholeNumber } from '../option-values.ts';
import type { Call, RemoteCommand, Use } from './run-remote.ts';

type SingleCommand = RemoteCommand & Use;

export const release: SingleCommand = {
  name: 'release',
  description: 'send the deliveries and mails that a restored copy holds',
  key: 'administrator',
  finds: 'GET /hold',
  request: 'POST /hold/release',
  content: {},
  print: (_, { found: before }: Call<object, ShownHold>) =>
    before.held ? 'Deliveries and mails are sent from now on.' : 'Nothing was held.',
};

export const importing: SingleCommand = {
  name: 'import',
  description: 'create documents on a running server from NDJSON, a document a line',
  key: 'administrator',
  arguments: [['<file>', 'the file, or - for stdin']],
  options: [
    ['--collection <name>', 'the collection; by default the name of the file (tickets.ndjson)'],
    [
      '--existing <what>',
      'what to do with a document whose id exists',
      { choices: ['skip', 'update', 'refuse'], value: 'skip' },
    ],
    ['--no-events', 'append no events, so that nothing is sent to webhooks and streams'],
    [
      '--batch <number>',
      'documents of one request',
      { parse: wholeNumber(1, settings.bulkItemsMax.most), value: 500 },
    ],
  ],
  help:
    '\nA line may have id, createdAt, updatedAt and owner, as "comity export" writes them.' +
    '\nRun it again after an interruption: what is there is skipped. Lines without an id are created again.' +
    '\nRefused lines are printed with their number; the others are imported, and the exit code is 1.',
  run: async (call) => (await import('./transfer.ts')).importDocuments(call),
};

export const exporting: SingleCommand = {
  name: 'export',
  description: 'write all documents of a collection on a running server as NDJSON or CSV',
  key: 'administrator',
  arguments: [['<name>', 'the collection']],
  options: [
    ['--format <format>', 'form of the documents', { choices: ['ndjson', 'csv'], value: 'ndjson' }],
    ['--filter <query>', 'only documents that match, as in a query string: status=open&hours[gt]=2'],
    ['--columns <names>', 'columns of CSV; by default every member of any document', { parse: commaList }],
    ['-o, --output <file>', 'the file, which must not exist yet; stdout by default'],
  ],
  help:
    '\nThe documents come by id, each once, as they are stored, with their owner.' +
    '\n"comity import" reads NDJSON back, into either store.',
  run: async (call) => (await import('./transfer.ts')).exportDocuments(call),
};

export const listening: SingleCommand = {
  name: 'listen',
  description: 'forward the events of a running server to a program on this machine, signed as webhooks',
  key: 'webhooks',
  options: [
    ['--forward-to <url>', 'the program, such as http://127.0.0.1:3000/webhooks', { isRequired: true }],
    ['--events <patterns>', 'which events: products.created, products.* ... (*)', { parse: commaList }],
    ['--scheme <scheme>', 'how they are signed', { choices: schemes, value: 'standard' }],
    ['--since <id>', 'begin after this event of the log, evt_... (now)'],
  ],
  help:
    '\nThe secret is generated for this run and printed once, unless COMITY_LISTEN_SECRET is set.' +
    '\nForwards the events that the key may read. Ctrl-C ends it with exit code 0.',
  run: async (call) => (await import('./listen.ts')).listen(call),
};

export const calling: SingleCommand = {
  name: 'call',
  description: 'call an action of the configuration, and print its answer',
  key: 'any',
  arguments: [['<name>', 'its path below the base: ping, tickets/export, tickets/ID/merge']],
  options: [
    ['--input <json>', 'its input: a JSON object, @file, or - for stdin'],
    ['--method <method>', 'its method, where the path has several'],
  ],
  help:
    '\nPrints JSON in lines, and other content as it comes; --json prints that as base64.' +
    '\nExits 1 if the action was refused.',
  run: async (call) => (await import('./call-action.ts')).callAction(call),
};
