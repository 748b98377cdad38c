/**
 * The change itself, made inside the transaction of the store, and the answer to it (§4.1, §4.4-§4.7, §4.12).
 */
import { answer, to } from '../edge.ts';
import type { Nodes } from '../node.ts';

export const resultNodes = {
  safe: {
    section: 'RFC 9110 §9.2.1',
    question: 'Is the method GET, HEAD or QUERY?',
    ask: (facts) => facts.method === 'GET' || facts.method === 'HEAD' || facts.method === 'QUERY',
    yes: to('elsewhere'),
    no: to('async_asked'),
  },
  elsewhere: {
    section: '§4.12',
    question: 'Does the result lie at another URI?',
    ask: (facts) => facts.elsewhere,
    yes: answer('see_other'),
    no: to('stream_asked'),
  },
  stream_asked: {
    section: '§6',
    question: 'Is the event stream asked for?',
    ask: (facts) => facts.streamAsked,
    yes: answer('stream'),
    no: answer('representation'),
  },
  async_asked: {
    section: 'RFC 7240 §4.1',
    question: 'Is an asynchronous answer preferred, and offered here?',
    ask: (facts) => facts.asyncAsked,
    yes: answer('accepted'),
    no: to('superseded'),
  },
  superseded: {
    section: 'design §3',
    question: 'Did another change come first, so that the walk must look again?',
    want: 'result',
    ask: (facts) => (facts.result === undefined ? undefined : facts.result === 'superseded'),
    yes: to('exists'),
    no: to('change_made'),
  },
  change_made: {
    section: '§7',
    question: 'Did the store make the change?',
    ask: (facts) => facts.result === 'made',
    yes: to('deletion'),
    no: {
      refuse: [
        'unique_taken',
        'dependants_exist',
        'reference_missing',
        'content_too_large',
        'no_token_provided',
        'invalid_credentials',
        'invalid_token',
        'email_unverified',
        'code_invalid',
        'forbidden',
        'not_found',
        'cross_site_request',
        'field_missing',
        'validation_failed',
        'rate_limited',
        'unavailable',
      ],
      pick: (facts) => facts.resultProblem,
    },
  },
  deletion: {
    section: '§4.7',
    question: 'Is it DELETE?',
    ask: (facts) => facts.method === 'DELETE',
    yes: to('deletion_representation'),
    no: to('queued'),
  },
  queued: {
    section: '§4.1',
    question: 'Is it done after the answer?',
    ask: (facts) => facts.queued,
    yes: answer('queued'),
    no: to('created'),
  },
  deletion_representation: {
    section: 'RFC 7240 §4.2',
    question: 'Is the deleted representation asked for?',
    ask: (facts) => facts.representationAsked,
    yes: answer('deleted_representation'),
    no: answer('deleted'),
  },
  created: {
    section: '§4.4.2, §4.5.3',
    question: 'Was a resource made?',
    ask: (facts) => facts.created,
    yes: to('browser_form'),
    no: to('minimal_asked'),
  },
  browser_form: {
    section: '§4.12',
    question: 'Was it a browser form that wants a page?',
    ask: (facts) => facts.browserForm,
    yes: answer('created_see_other'),
    no: answer('created'),
  },
  minimal_asked: {
    section: 'RFC 7240 §4.2',
    question: 'Is a minimal answer preferred, or nothing there to tell?',
    ask: (facts) => facts.minimalAsked || facts.told === false,
    yes: answer('changed_silently'),
    no: answer('changed'),
  },
} as const satisfies Nodes;
